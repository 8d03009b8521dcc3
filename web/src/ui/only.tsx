import type { ReactNode } from 'react';
import { useSession, type Role } from '../app/session';
import { Empty, Heading, Panel } from './controls';

const RANKS: Record<Role, number> = { member: 0, tenant_admin: 1, operator: 2 };
const WHO: Record<Role, string> = { member: 'everyone', tenant_admin: 'administrators of the tenant and operators', operator: 'operators of this server' };

/** A screen for a role and those above it. The server would refuse the others too; this way they get no error, and no entry in the audit log. */
export const Only = ({ role, title, children }: { role: Role; title: string; children: ReactNode }) =>
  RANKS[useSession().role] >= RANKS[role] ? (
    children
  ) : (
    <>
      <Heading title={title} />
      <Panel>
        <Empty title={`This screen is for ${WHO[role]}`}>Sign in as another person to see it.</Empty>
      </Panel>
    </>
  );
