/** What a screen says when it cannot show what it should. */
import { LandfallError } from '@landfall/client';
import { Link } from '@tanstack/react-router';
import { Button, Code, Empty, Heading } from '../ui/controls';

export const messageOf = (error: unknown): string => {
  if (error instanceof LandfallError) return `${error.message.replace(/\.$/, '')}.`;
  if (error instanceof TypeError) return 'The server does not respond. The console keeps trying.';
  return error instanceof Error ? error.message : String(error);
};

export const Failure = ({ error, retry, reset }: { error: unknown; retry?: () => void; reset?: () => void }) => (
  <Empty
    title="This could not be loaded"
    actions={
      (retry ?? reset) && (
        <Button icon="retry" onClick={retry ?? reset}>
          Try again
        </Button>
      )
    }
  >
    <p role="alert">{messageOf(error)}</p>
    {error instanceof LandfallError && (
      <p className="mt-1">
        <Code>{error.code}</Code>
        {error.requestId && (
          <>
            {' '}
            request <Code>{error.requestId}</Code>
          </>
        )}
      </p>
    )}
  </Empty>
);

export const NotFound = () => (
  <>
    <Heading title="There is no such screen" />
    <p>
      The address may be misspelt.{' '}
      <Link to="/files" className="text-brand underline">
        Go to the files
      </Link>
    </p>
  </>
);
