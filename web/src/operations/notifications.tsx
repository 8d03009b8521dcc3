/** What the server tells you: failed files, deletions ahead, webhooks that were disabled. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { landfall } from '../api/client';
import type { Notification } from '../api/reports';
import { number } from '../app/format';
import { ActionButton } from '../ui/action';
import { Answer, More, usePages } from '../ui/answer';
import { Badge, Empty, Heading, Panel, join, type Tone } from '../ui/controls';
import { Segments } from '../ui/fields';
import { Ago } from '../ui/time';

const KINDS: Record<Notification['type'], { label: string; tone: Tone }> = {
  'file-failure-notification': { label: 'Failed', tone: 'bad' },
  'file-deletion-warning': { label: 'Will be deleted', tone: 'warn' },
  'upload-expired-notification': { label: 'Upload expired', tone: 'warn' },
  'webhook-disabled-notification': { label: 'Webhook disabled', tone: 'bad' },
  'batch-expired-notification': { label: 'Batch expired', tone: 'warn' },
};

export const NotificationsScreen = () => {
  const [unread, setUnread] = useState(false);
  const query = usePages(['notifications', 'pages', unread], (cursor, signal) => landfall.get('/api/v2/notifications', { query: { limit: 50, cursor, ...(unread ? { unread } : {}) }, signal }));
  const count = query.data?.pages[0]?.unreadCount ?? 0;
  return (
    <>
      <Heading
        title="Notifications"
        note={count > 0 ? `${number(count)} unread` : 'All are read.'}
        actions={
          <>
            <Segments
              label="Which notifications"
              value={unread ? 'unread' : 'all'}
              options={[
                ['all', 'All'],
                ['unread', 'Unread'],
              ]}
              onChange={value => setUnread(value === 'unread')}
            />
            <ActionButton icon="check" disabled={count === 0} run={() => landfall.post('/api/v2/notifications/read-all')} done="All are marked as read." refresh={['notifications']}>
              Mark all as read
            </ActionButton>
          </>
        }
      />
      <Panel>
        <Answer query={query}>
          {({ pages }) => {
            const notifications = pages.flatMap(page => page.notifications);
            if (notifications.length === 0)
              return <Empty title={unread ? 'You have read everything' : 'There are no notifications'}>When a file fails or will be deleted, you are told here.</Empty>;
            return (
              <>
                <ul>
                  {notifications.map(notification => (
                    <Item key={notification.notificationId} notification={notification} />
                  ))}
                </ul>
                <More query={query} what="notifications" />
              </>
            );
          }}
        </Answer>
      </Panel>
    </>
  );
};

const Item = ({ notification }: { notification: Notification }) => {
  const { label, tone } = KINDS[notification.type] ?? { label: notification.type, tone: 'calm' };
  const isUnread = !notification.readAt && !notification.resolvedAt;
  const webhookId = (notification.data as { webhookId?: string } | null)?.webhookId;
  const batchId = (notification.data as { batchId?: string } | null)?.batchId;
  return (
    <li className="flex flex-wrap items-start justify-between gap-x-4 gap-y-2 border-t border-line px-4 py-3 first:border-t-0">
      <div className="min-w-0 flex-1 basis-64">
        <p className="flex flex-wrap items-center gap-2">
          {isUnread && <Badge tone="brand">New</Badge>}
          <Badge tone={tone}>{label}</Badge>
          <span className="text-soft">
            <Ago at={notification.createdAt} />
            {notification.resolvedAt && ', settled by itself'}
          </span>
        </p>
        <p className={join('mt-1 break-words', isUnread && 'font-medium')}>{notification.message}</p>
        <p className="flex flex-wrap gap-x-4">
          {notification.fileId && (
            <Link to="/files/$fileId" params={{ fileId: notification.fileId }} className="min-w-0 wrap-anywhere text-brand underline">
              {notification.fileName ?? 'The file'}
            </Link>
          )}
          {!notification.fileId && webhookId && (
            <Link to="/webhooks/$webhookId" params={{ webhookId }} className="text-brand underline">
              The webhook
            </Link>
          )}
          {!notification.fileId && batchId && (
            <Link to="/batches/$batchId" params={{ batchId }} className="text-brand underline">
              The batch
            </Link>
          )}
        </p>
      </div>
      {isUnread && (
        <ActionButton
          look="quiet"
          icon="check"
          aria-label={`Mark as read: ${notification.message}`}
          run={() => landfall.post('/api/v2/notifications/{notificationId}/read', { params: { notificationId: notification.notificationId } })}
          refresh={['notifications']}
        >
          Mark as read
        </ActionButton>
      )}
    </li>
  );
};
