/** Menus. */
import { DropdownMenu as Radix } from 'radix-ui';
import { useState, type ReactNode } from 'react';
import { join } from './controls';
import { Icon, type IconName } from './icons';

export interface MenuItem {
  label: string;
  icon?: IconName;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  checked?: boolean;
}

export const Menu = ({ trigger, items, label }: { trigger: ReactNode; items: (MenuItem | 'line')[]; label?: string }) => {
  // In the main part of the page, so that it is in a landmark. That part may not exist yet when the trigger is first rendered.
  const [main, setMain] = useState<HTMLElement | null>(null);
  return (
    <Radix.Root modal={false} onOpenChange={open => open && setMain(document.getElementById('main'))}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal container={main}>
        <Radix.Content aria-label={label} align="end" sideOffset={4} collisionPadding={8} className="z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-44 overflow-y-auto rounded-md border border-line bg-panel p-1 shadow-lg">
          {items.map((item, index) =>
            item === 'line' ? (
              <Radix.Separator key={index} className="my-1 h-px bg-line" />
            ) : (
              <Radix.Item
                key={item.label}
                disabled={item.disabled}
                onSelect={item.onSelect}
                className={join(
                  'flex cursor-pointer items-center gap-2 rounded px-2.5 py-1.5 outline-none select-none data-[disabled]:cursor-not-allowed data-[disabled]:opacity-45 data-[highlighted]:bg-sunken',
                  item.danger && 'text-bad',
                )}
              >
                {item.icon ? <Icon name={item.icon} /> : <span className="w-4" />}
                <span className="flex-1">{item.label}</span>
                {item.checked && <Icon name="check" />}
              </Radix.Item>
            ),
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
};
