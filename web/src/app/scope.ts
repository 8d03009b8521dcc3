/** Whose files the screens show: mine, my tenant's, or all. It is in the address, so that a link shows the same. */
import { useRouterState, useNavigate } from '@tanstack/react-router';
import type { Scope } from '../api/types';
import { useSession, type Role } from './session';

export const SCOPES: Record<Role, readonly Scope[]> = {
  member: ['own'],
  tenant_admin: ['own', 'tenant'],
  operator: ['own', 'tenant', 'all'],
};

export const SCOPE_NAMES: Record<Scope, string> = { own: 'Mine', tenant: 'My tenant', all: 'All tenants' };

export const useScope = (): Scope => {
  const { role } = useSession();
  const asked = useRouterState({ select: state => (state.location.search as { scope?: Scope }).scope });
  return asked && SCOPES[role].includes(asked) ? asked : 'own';
};

export const useSetScope = () => {
  const navigate = useNavigate();
  return (scope: Scope) =>
    void navigate({ to: '.', search: (before: Record<string, unknown>) => ({ ...before, scope: scope === 'own' ? undefined : scope }) as never });
};
