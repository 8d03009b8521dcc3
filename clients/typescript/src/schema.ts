// Generated from the description of the API by `npm run generate -- openapi.json`. Do not edit.

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The web console.
         * @description One page without data: it asks the API for everything that it shows. It has addresses of its own below `/console`, which it reads
         *     itself.
         */
        get: operations["openConsole"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The page that shows this description and can send requests.
         * @description It opens without a token. The requests that it sends need one.
         */
        get: operations["openDocs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/docs/{asset}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A file of that page.
         * @description The name comes from the page. All files are part of the program, so the page loads nothing from other servers.
         */
        get: operations["showDocs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The caller's files as jobs, newest first.
         * @description A job has the id of its file. Use `cursor` for the next page; `offset` is for clients that count pages.
         */
        get: operations["listJobs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{fileId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One file as a job.
         * @description The state has a word of the older API: `uploading`, `queued`, `processing`, `complete`, `failed` or `cancelled`.
         */
        get: operations["showJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{fileId}/download": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What the operator's extraction service made of a file; where there is none, the bytes as they were uploaded.
         * @description The response is an attachment, with the content type that the service declared or that was declared at the
         *     registration.
         */
        get: operations["downloadJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{fileId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retries a file that failed.
         * @description It begins at the stage that failed. A job in any other state is refused with `INVALID_STATE`.
         */
        post: operations["retryJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This description.
         * @description It needs no token, and it is the same for every caller.
         */
        get: operations["describeApi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/audit-log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What administrators and operators did, and which requests were refused for lack of permission, newest first.
         * @description Administrators of a tenant see what its users did and what was done to its files; operators see everything.
         */
        get: operations["listAuditLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/audit-log/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The same as JSON lines, all of them.
         * @description Each line is an entry. `limit` and `cursor` do not apply.
         */
        get: operations["exportAuditLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/circuits/{service}/probe": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Tries a service at once whose circuit is open.
         * @description The files that have waited the longest go to it. Any other circuit stays as it is.
         */
        post: operations["probeCircuit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/cleanup-failures": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What could not be cleaned, with the last error of each, those that wait longest first.
         * @description Each is tried again by itself, and leaves the list when it is clean.
         */
        get: operations["listCleanupFailures"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The settings in force in the process that answers, and where each comes from.
         * @description Secrets, and passwords in URLs, are shown as `***`. Another process may have other settings.
         */
        get: operations["showConfig"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The jobs, and when each ran and will run.
         * @description The times are in UTC. A job runs in one process at a time, whichever is first.
         */
        get: operations["listMaintenanceJobs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/jobs/{jobName}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs a job now.
         * @description The response is 200 with the result, or 202 if the job still runs after some seconds: it goes on, and the list
         *     of jobs shows its end. `force` ignores the safety limit of a job that has one.
         */
        post: operations["runMaintenanceJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/jobs/{jobName}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The runs of a job, the newest first.
         * @description Those of the last 30 days, and at most 500. A run whose process died is `interrupted`.
         */
        get: operations["listMaintenanceRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/queue-status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The status of the queue.
         * @description Throughput, the waiting and running files of each stage, the workers, the circuits of the services, and the
         *     schedules.
         */
        get: operations["showQueueStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/queues/{stage}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pauses a stage.
         * @description No process claims files for it from now on. Files that are being worked on finish, and the others wait until the
         *     stage is resumed.
         */
        post: operations["pauseQueue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/queues/{stage}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resumes a stage.
         * @description The files that wait for it are claimed at once. A stage that is not paused stays as it is.
         */
        post: operations["resumeQueue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/reindex": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How far the re-embedding is.
         * @description While none runs, `remaining` says how many files were embedded with another model.
         */
        get: operations["showReindex"];
        put?: never;
        /**
         * Starts to re-embed all files of another model.
         * @description A process of the server does it in the background, and another one goes on if that process ends.
         */
        post: operations["startReindex"];
        /**
         * Stops the re-embedding.
         * @description Files that have new vectors keep them. It can be started again, and then goes on with the others.
         */
        delete: operations["stopReindex"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All tenants with their quotas and usage.
         * @description In the order of their names. `isDefault` says which limits are the server's and not the tenant's own.
         */
        get: operations["listTenants"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/admin/tenants/{tenantId}/quota": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Sets the limits of a tenant.
         * @description A limit that is left out goes back to the default of the server. A limit below the usage refuses new files and
         *     deletes none.
         */
        put: operations["setQuota"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The API keys, newest first, without the keys themselves.
         * @description Revoked and expired ones stay in the list for a while.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Creates an API key.
         * @description The response is the only place where the key can be seen. A key acts for one user and reaches only what its
         *     scopes allow.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/keys/{keyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revokes an API key.
         * @description From now on it is refused. It stays in the list for a while, with who revoked it.
         */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The caller's notifications, newest first.
         * @description `unreadCount` is the number of all that were not read, counted up to 1000, also where the page has fewer.
         */
        get: operations["listNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/notifications/read-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Marks all current notifications as read.
         * @description A notification that comes at the same moment stays unread.
         */
        post: operations["readNotifications"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/notifications/{notificationId}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Marks a notification as read.
         * @description Repeating it changes nothing: the time of the first reading stays.
         */
        post: operations["readNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The passages in the caller's files that match a question, best first.
         * @description Words and meaning are compared, and each passage gets one score from both. A query that no passage has to do with finds
         *     nothing. Only files that are ready are searched, and only the caller's own.
         */
        post: operations["search"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/storage/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Takes the notifications of the object store that objects were written: of S3 (also through SNS and EventBridge), of Azure
         *     (Event Grid) and of Google Cloud Storage (Pub/Sub).
         * @description They are optional: an upload that is not confirmed is found at its deadline. The caller sends `STORAGE_EVENTS_TOKEN`.
         */
        post: operations["takeStorageEvents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/batches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The caller's batches, newest first.
         * @description They come without their metadata and without `progress`; one batch alone has both.
         */
        get: operations["listBatches"];
        put?: never;
        /**
         * Opens a batch for a number of files.
         * @description The batch takes files until it has as many as it was opened for, is closed or cancelled, or expires.
         */
        post: operations["openBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/batches/{batchId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A batch, and how many of its files are in each state.
         * @description `progress` counts the files in each state now, and `summary` what became of the promised files.
         */
        get: operations["showBatch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/batches/{batchId}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancels a batch.
         * @description Waiting and running files are cancelled, missing ones are deleted, and ready ones stay. Repeating it is safe; a
         *     completed batch is refused.
         */
        post: operations["cancelBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/batches/{batchId}/close": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Closes a batch for new files.
         * @description It is complete when all its files are. Repeating it is safe.
         */
        post: operations["closeBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/batches/{batchId}/files/{fileId}/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirms a file of a batch.
         * @description The same as confirming the file by itself, and refused if the file is not in this batch.
         */
        post: operations["confirmFileInBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/batches/{batchId}/upload-urls": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reserves room for one file of a batch, or for a list of up to 1000.
         * @description Either all files of the list are registered or none. The response is one ticket or a list of them, as the body
         *     was.
         */
        post: operations["registerFilesInBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/blobs/{fileId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * The bytes of a file. The signature in the URL is the authorization.
         * @description The URL is in the response to a registration, and is valid for one file, one size and a limited time.
         */
        put: operations["sendBytes"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/blockers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Why files do not move.
         * @description Each cause with its files, what would help, and whether the caller may do it; and how many files are at each stage.
         */
        get: operations["showBlockers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/dashboard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The state of the caller's files at this moment.
         * @description The counts are exact at the time of the request.
         */
        get: operations["showDashboard"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/dlq": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The caller's dead letters, newest first.
         * @description A dead letter is a file that failed permanently. It is deleted at `deletionAt` unless it is retried.
         */
        get: operations["listDeadLetters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/dlq/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The causes of the dead letters, the most frequent first.
         * @description Failures with the same stage, code and kind of message have the same fingerprint. The list has no pages, so a
         *     cursor is refused.
         */
        get: operations["groupDeadLetters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/dlq/retry-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retries all dead letters that match.
         * @description A few files go first; if they fail again, the operation stops. The response has the progress so far, which for
         *     small numbers is the end.
         */
        post: operations["retryDeadLetters"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/dlq/{fileId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Discards a dead letter.
         * @description The file and its bytes are deleted. Its history stays for a while.
         */
        delete: operations["discardDeadLetter"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/dlq/{fileId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retries a dead letter from the stage that failed.
         * @description The attempts count from the beginning again. A file that is no dead letter is refused with `INVALID_STATE`.
         */
        post: operations["retryDeadLetter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Events, live: as a WebSocket, or as server-sent events.
         * @description Each message of a WebSocket, and each `data` of a server-sent event, is a `StreamMessage`. A stream continues
         *     after the id in `Last-Event-ID` or `after`, or begins now.
         */
        get: operations["streamEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/events/ticket": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A ticket to open a stream, for clients that cannot send headers.
         * @description It is valid for 30 seconds and only opens streams, as the query parameter `ticket`.
         */
        post: operations["issueTicket"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The caller's files, newest first or in another order.
         * @description Use `cursor` for the next page: pages stay consistent while files come and go. `offset` is for clients that count pages.
         */
        get: operations["listFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/archive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The originals of many files as a ZIP archive: up to 10,000 that match the filters, or up to 1,000 by their ids.
         * @description The names in it are unique, and safe on every system. A file that cannot be read is named in `MISSING.txt` in the archive,
         *     with the reason.
         */
        get: operations["archiveFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How many files match, in each state.
         * @description Up to 100,000 files are compared with the filters; with more, `isCapped` is true.
         */
        get: operations["countFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/init": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reserves room for one file and returns the address for its bytes.
         * @description Send the bytes to `uploadUrl` with `method` and `headers`, and then confirm. The room is released if the bytes
         *     do not come in time.
         */
        post: operations["registerFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One file: its state, what it waits for, and its last error.
         * @description `waitingFor` and `waitingMessage` say why a file does not move, and `retryAt` when it may go on.
         */
        get: operations["showFile"];
        put?: never;
        post?: never;
        /**
         * Deletes a file in any state.
         * @description Its bytes, text and index entries are removed, and its quota is free again. A second deletion changes nothing.
         */
        delete: operations["deleteFile"];
        options?: never;
        head?: never;
        /**
         * Changes what the client noted about a file.
         * @description The attributes in the body take the place of all that the file has. A search can be narrowed by them.
         */
        patch: operations["changeFile"];
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancels a file that waits or is being processed.
         * @description Work on it is stopped. It can be retried later, from the stage that it had reached.
         */
        post: operations["cancelFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/chunks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The chunks of a file, in their order.
         * @description Each is found as one by the search, and says where in the text it begins and ends.
         */
        get: operations["listChunks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirms an upload.
         * @description If the bytes are there and match what was declared, the file is in the queue after this. Repeating it is safe.
         */
        post: operations["confirmFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/download": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The bytes of a file as they were uploaded. Always as an attachment: an upload is not a page of this server.
         * @description Where the bytes are in an object store, the response is a redirect to it, unless `proxy=true`.
         */
        get: operations["downloadFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Every step of a file, oldest first.
         * @description Each says who or what caused it, and why. A deleted file still has its history for a while.
         */
        get: operations["showHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/result": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The result of the extraction, as an attachment.
         * @description It is what the operator's extraction service returned, in its content type. It may be a page that another person
         *     wrote, so a browser does not show it.
         */
        get: operations["showResult"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retries a file that failed or was cancelled.
         * @description It begins at `fromStage`, or at the stage that it ended at. The attempts count from the beginning again.
         */
        post: operations["retryFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/s3-requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Signs one request for the bytes of a registered file: to store the object, or to begin, send, list, complete or abort a
         *     multipart upload of it.
         * @description Only where the object store speaks S3 and `UPLOAD_MODE` is `direct`. Each call also extends the life of the registration. When
         *     the object is complete, confirm the file.
         */
        post: operations["signS3Request"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/text": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The text that was extracted from a file.
         * @description It is Markdown, with headings, lists, tables and links, unless the file is plain text. Places in the text, such as
         *     `charStart`, are places in the Markdown.
         */
        get: operations["showText"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/files/{fileId}/upload-url": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A fresh URL for a file whose bytes are not confirmed yet.
         * @description It also extends the life of the registration.
         */
        post: operations["freshUploadUrl"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Operations on many files, newest first.
         * @description Operations that ended stay in the list for a while.
         */
        get: operations["listOperations"];
        put?: never;
        /**
         * Retries, cancels or deletes many files, in the background.
         * @description Only files that exist when the operation begins are touched, and of these only those whose state allows the action. Each
         *     file is compared with the filter when its turn comes.
         */
        post: operations["startOperation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/operations/{operationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The progress of an operation.
         * @description `endedAt` is null while it goes on. It survives a crash of the server.
         */
        get: operations["showOperation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/operations/{operationId}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stops an operation.
         * @description What was done to files stays done. Stopping an operation that has ended changes nothing.
         */
        post: operations["stopOperation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/orphans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What is left over in the storage and in the database.
         * @description The report is that of the last scan, unless `refresh` asks for a new one.
         */
        get: operations["showOrphans"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/quota": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The quota of the caller's tenant, and its usage.
         * @description `reserved` is for files whose bytes have not come yet. `free` is what a registration can still use.
         */
        get: operations["showQuota"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/stuck": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The stuck files, those without progress for the longest time first, and their number.
         * @description A stuck file should move and does not. `reason` and `message` say why.
         */
        get: operations["listStuckFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/stuck/retry-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Recovers all stuck files.
         * @description Each goes back to the queue at the stage that it was at. Files that moved in the meantime are skipped.
         */
        post: operations["retryStuckFiles"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/stuck/{fileId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Recovers one stuck file.
         * @description It goes back to the queue at the stage that it was at. A file that has ended, or is not in the queue yet, is
         *     refused.
         */
        post: operations["retryStuckFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/tus": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Registers a file and begins its resumable upload, with its first bytes if the request has some.
         * @description `Upload-Metadata` has pairs of a name and a value in base64: `filename` (or `name`), `filetype` (or `type`), `batch` (the id of a
         *     batch), `mapping` and `attributes` (JSON), `md5` and `sha256`. With `Upload-Concat: partial` the bytes are a part of a file; `Upload-Concat: final;`
         *     and the addresses of the parts makes a file of them.
         */
        post: operations["createUpload"];
        delete?: never;
        /**
         * What resumable uploads can do here.
         * @description It needs no token. The headers have the version of tus, its extensions, and the largest size.
         */
        options: operations["describeUploads"];
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/uploads/tus/{uploadId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The method of `X-HTTP-Method-Override`, for clients that can only send a POST.
         * @description The request is handled as one of that method, with its headers and its body.
         */
        post: operations["overrideMethod"];
        /**
         * Ends an upload.
         * @description Its bytes are removed and its room is free again. If it is complete, its file is deleted, for which an API key
         *     needs the scope `manage`.
         */
        delete: operations["terminateUpload"];
        /**
         * The same for the address of one upload.
         * @description It needs no token, and has the same headers as that of all uploads.
         */
        options: operations["describeUpload"];
        /**
         * How far an upload is.
         * @description A request that still sends bytes to it is ended.
         */
        head: operations["uploadOffset"];
        /**
         * The next bytes of an upload.
         * @description With the last of them the file is in the queue. Bytes that arrived stay when the connection breaks.
         */
        patch: operations["appendToUpload"];
        trace?: never;
    };
    "/api/v2/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The caller's webhooks, newest first.
         * @description They come without their secrets.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Registers an address that events are sent to.
         * @description Only this response contains the secret that signs them. Bodies and headers follow Standard Webhooks.
         */
        post: operations["registerWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/webhooks/{webhookId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One webhook, without its secret.
         * @description `failingSince` and `disabledReason` say whether its endpoint accepts what is sent.
         */
        get: operations["showWebhook"];
        put?: never;
        post?: never;
        /**
         * Removes a webhook and its log.
         * @description Nothing more is sent to it, not even what already waits.
         */
        delete: operations["removeWebhook"];
        options?: never;
        head?: never;
        /**
         * Changes the fields in the body, and nothing else.
         * @description Events that happened while it was disabled are not sent when it is enabled again.
         */
        patch: operations["changeWebhook"];
        trace?: never;
    };
    "/api/v2/webhooks/{webhookId}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The deliveries of a webhook, newest first.
         * @description Each says how often it was tried and what the endpoint replied last.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends a delivery again.
         * @description One that still waits is sent at once; otherwise it is a new delivery with the same message id and a day of
         *     retries of its own.
         */
        post: operations["redeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/webhooks/{webhookId}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotates the secret of a webhook.
         * @description Only this response contains the new one. The previous one also signs for a day.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v2/webhooks/{webhookId}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends a test delivery, to see whether it arrives.
         * @description Its type is `webhook:test`. It is sent in the background; the list of deliveries shows the reply.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/assets/{consoleFile}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A file of the console.
         * @description It is part of the program, and its name changes with its content, so that browsers can keep it.
         */
        get: operations["showConsoleAsset"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The identity provider sends the browser back here.
         * @description It checks what the provider says, begins a session, and sends the browser on to the page.
         */
        get: operations["finishLogin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Issues a link that signs a person in once.
         * @description It needs an operator's token; a session is not enough. The link expires soon.
         */
        post: operations["issueLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/links/open": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Says whom a link signs in and, once the person has confirmed it, does so.
         * @description Without `confirm` the link stays valid, so a program that only looks at it does not use it up.
         */
        post: operations["openLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Sends the browser to the identity provider.
         * @description The provider sends it back to `/auth/callback`. `returnTo` is the page to show after that.
         */
        get: operations["logIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ends the session of this browser.
         * @description With `everywhere` it also ends the person's sessions in all other browsers. `providerUrl` signs out of the
         *     identity provider too.
         */
        post: operations["logOut"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who is signed in in this browser.
         * @description It also says that the person is there, so the idle time begins again.
         */
        get: operations["showSession"];
        put?: never;
        /**
         * Begins a session with a token.
         * @description The token is sent in `Authorization`. The session ends with the token at the latest, and the response sets its
         *     cookie.
         */
        post: operations["beginSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether this process is alive.
         * @description Depends on nothing: a process that responds is alive, and a restart would fix nothing.
         */
        get: operations["isAlive"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The metrics of this process and of all users' files, for Prometheus.
         * @description Needs `METRICS_TOKEN` or an administrator's token. A server that only its own machine can reach needs none.
         */
        get: operations["showMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether this process can do its work.
         * @description Names every check, so that an operator knows which one failed.
         */
        get: operations["isReady"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    "alert:raised": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Something needs an operator. For administrators.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onAlertRaised"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "batch:cancelled": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A batch was cancelled.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onBatchCancelled"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "batch:completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * All files of a batch have ended.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onBatchCompleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "batch:expired": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Files of a batch never came. Those that came go on.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onBatchExpired"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "batch:progress": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The files of a batch moved: when one ends, and at most once a second for each batch.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onBatchProgress"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "circuit:changed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A service failed, is tried again, or works again. For administrators.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onCircuitChanged"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "file:cleaned-up": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The server deleted a file by itself.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onFileCleanedUp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "file:processing-stalled": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The worker of a file died or lost track of it. The file continues by itself.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onFileProcessingStalled"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "file:status-changed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A file went from one state to another.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onFileStatusChanged"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "job:completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A maintenance job ended. For administrators.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onJobCompleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "notification:created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The user has a new notification.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onNotificationCreated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "queue:rate-limit-exceeded": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A stage reached its rate limit. For administrators.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onQueueRateLimitExceeded"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "webhook:test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A test that was asked for.
         * @description Landfall sends this to the address of a webhook. Verify the signature before anything else; it follows Standard Webhooks. A message may come more than once, always with the same `webhook-id`.
         */
        post: operations["onWebhookTest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        AbandonedUploads: {
            /** Format: int64 */
            count: number;
            /** Format: int64 */
            oldestAge: number;
        };
        /** @description Who or what caused a step. */
        Actor: {
            kind: components["schemas"]["ActorKind"];
            /** @description The user, the worker's host and process, or the name of the job. */
            name: string;
        };
        /** @enum {string} */
        ActorKind: "user" | "worker" | "sweep" | "administrator" | "system";
        AlertRaisedData: {
            alert: string;
            message: string;
        };
        /** @description Something needs an operator. For administrators. */
        AlertRaisedEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["AlertRaisedData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "alert:raised";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description Something needs an operator. For administrators. */
        AlertRaisedWebhook: {
            data: components["schemas"]["AlertRaisedData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "alert:raised";
        };
        /** @description A key as it is listed: all but the key itself. */
        ApiKey: {
            /** Format: date-time */
            createdAt: string;
            createdBy: string;
            /** Format: date-time */
            expiresAt: string | null;
            /** @description How the key begins. */
            hint: string;
            /** Format: uuid */
            keyId: string;
            /**
             * Format: date-time
             * @description To the minute.
             */
            lastUsedAt: string | null;
            /** @description The address of the client that used it then. */
            lastUsedFrom: string | null;
            name: string;
            /** Format: date-time */
            revokedAt: string | null;
            revokedBy: string | null;
            role: components["schemas"]["Role"];
            scopes: components["schemas"]["KeyScope"][];
            tenantId: string;
            userId: string;
        };
        ApiKeyList: {
            keys: components["schemas"]["ApiKey"][];
            nextCursor: string | null;
        };
        /** @description An action of an administrator, or a request that was refused for lack of permission. */
        AuditEntry: {
            /** @description The operation of this description. */
            action: string;
            actorRole: components["schemas"]["Role"] | null;
            /** @description Who asked; null, like the next three, if the request had no valid credential. */
            actorTenantId: string | null;
            actorUserId: string | null;
            /** @description The address of the client. */
            address: string | null;
            /** Format: date-time */
            at: string;
            code: string | null;
            /** @description `token`, `session`, `ticket`, or the id of an API key. */
            credential: string | null;
            /** Format: int64 */
            id: number;
            method: string;
            outcome: components["schemas"]["AuditOutcome"];
            path: string;
            /** @description The id of the request in the log. */
            requestId: string | null;
            /**
             * Format: int64
             * @description The status of the response, and the code of its refusal.
             */
            status: number | null;
            /** @description Whose it was, where that is known. */
            targetTenantId: string | null;
            targetUserId: string | null;
        };
        AuditEntryList: {
            entries: components["schemas"]["AuditEntry"][];
            nextCursor: string | null;
        };
        /** @enum {string} */
        AuditOutcome: "started" | "done" | "failed" | "refused";
        BatchCancelledData: {
            /** Format: uuid */
            batchId: string;
            summary: components["schemas"]["BatchSummary"];
        };
        /** @description A batch was cancelled. */
        BatchCancelledEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["BatchCancelledData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "batch:cancelled";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description A batch was cancelled. */
        BatchCancelledWebhook: {
            data: components["schemas"]["BatchCancelledData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "batch:cancelled";
        };
        /** @description All files of a batch have ended. */
        BatchCompletedEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["BatchCountsData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "batch:completed";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description All files of a batch have ended. */
        BatchCompletedWebhook: {
            data: components["schemas"]["BatchCountsData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "batch:completed";
        };
        /**
         * @description How many files of a batch are in each state, and what became of the promised ones. An event that version 0.1.0 recorded
         *     has fewer counts.
         */
        BatchCountsData: {
            /** Format: uuid */
            batchId: string;
            /** Format: int64 */
            cancelled: number;
            /** Format: int64 */
            chunking: number;
            /** Format: int64 */
            deleted: number;
            /** Format: int64 */
            embedding: number;
            /** Format: int64 */
            extracting: number;
            /** Format: int64 */
            failed: number;
            /**
             * Format: int64
             * @description How many files the batch was opened for.
             */
            fileCount: number;
            /** Format: int64 */
            neverUploaded: number;
            /** Format: int64 */
            queued: number;
            /** Format: int64 */
            ready: number;
            /** Format: int64 */
            registered: number;
            /** Format: int64 */
            scanning: number;
            summary: components["schemas"]["BatchSummary"];
            /** Format: int64 */
            total: number;
            /** Format: int64 */
            uploaded: number;
        };
        /** @description Files of a batch never came. Those that came go on. */
        BatchExpiredEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["BatchCountsData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "batch:expired";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description Files of a batch never came. Those that came go on. */
        BatchExpiredWebhook: {
            data: components["schemas"]["BatchCountsData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "batch:expired";
        };
        BatchList: {
            batches: components["schemas"]["BatchView"][];
            nextCursor: string | null;
        };
        /** @description The files of a batch moved: when one ends, and at most once a second for each batch. */
        BatchProgressEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["BatchCountsData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "batch:progress";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description The files of a batch moved: when one ends, and at most once a second for each batch. */
        BatchProgressWebhook: {
            data: components["schemas"]["BatchCountsData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "batch:progress";
        };
        /** @enum {string} */
        BatchStatus: "active" | "completed" | "expired" | "cancelled";
        /** @description What became of the promised files. Once none of them waits or runs any more, the other numbers add up to `total`. */
        BatchSummary: {
            /** Format: int64 */
            cancelled: number;
            /**
             * Format: int64
             * @description Deleted by their owner, or at the end of their retention.
             */
            deleted: number;
            /** Format: int64 */
            failed: number;
            /**
             * Format: int64
             * @description Their bytes had not come when their registration or the batch expired.
             */
            neverUploaded: number;
            /** Format: int64 */
            ready: number;
            /** Format: int64 */
            total: number;
        };
        /** @description A batch as clients see it. */
        BatchView: {
            /**
             * Format: uuid
             * @description The archive that its files were unpacked from; null for a batch that a client opened.
             */
            archiveFileId: string | null;
            /** Format: uuid */
            batchId: string;
            /** Format: date-time */
            completedAt: string | null;
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            expiresAt: string;
            /** Format: int64 */
            fileCount: number;
            /** @description What the client stored with the batch. It is left out in lists, and if there is none. */
            metadata?: Record<string, unknown>;
            priority: components["schemas"]["Priority"];
            /** @description How many files are in each state now. */
            progress?: {
                [key: string]: number;
            };
            /** Format: int64 */
            registered: number;
            status: components["schemas"]["BatchStatus"];
            summary: components["schemas"]["BatchSummary"];
        };
        /** @description One cause, and the files that it holds up. */
        Blocker: {
            /** @description The operator who paused the stage, for operators. */
            by: string | null;
            /** Format: int64 */
            files: number;
            /** @description Whether the caller may do what helps. */
            isAllowed: boolean;
            kind: components["schemas"]["BlockerKind"];
            /** @description What the service last said, for operators; for others one sentence without details of the server. */
            lastError: string | null;
            /** @description What happens, and what to do. */
            message: string;
            /**
             * Format: date-time
             * @description Since when the first of them waits.
             */
            oldestAt: string | null;
            remedy: components["schemas"]["Remedy"] | null;
            service: components["schemas"]["Service"] | null;
            /**
             * Format: date-time
             * @description Since when the cause holds them up.
             */
            since: string | null;
            stage: components["schemas"]["Stage"] | null;
            /**
             * Format: date-time
             * @description The next probe, the next attempt, or the end of the limit.
             */
            until: string | null;
        };
        /** @enum {string} */
        BlockerKind: "circuit" | "paused" | "no_workers" | "rate_limit" | "stuck" | "isolation" | "retry" | "worker" | "upload";
        BlockerReport: {
            blockers: components["schemas"]["Blocker"][];
            stages: components["schemas"]["StageLoad"][];
            /** @description The 20 tenants with the most files in the queue; empty unless the scope is `all`. */
            tenants: components["schemas"]["TenantLoad"][];
        };
        /** @description A rectangle on a page as it is shown, in parts of its width and height, from its upper left corner. */
        Box: {
            /** Format: double */
            bottom: number;
            /** Format: double */
            left: number;
            /** Format: double */
            right: number;
            /** Format: double */
            top: number;
        };
        /** @description A piece of a file that is found as one. */
        Chunk: {
            /** Format: int64 */
            charEnd: number;
            /**
             * Format: int64
             * @description Where it is in the file's text, in characters. A header row that is repeated from the beginning of its table is not
             *     counted.
             */
            charStart: number;
            heading: string | null;
            /** @description The headings that it is under, from the top of the document down to its own. */
            headings: string[];
            /** Format: int64 */
            ordinal: number;
            /** Format: int64 */
            page: number | null;
            /** @description Where it is on its pages, if that is known. */
            places: components["schemas"]["Place"][];
            text: string;
            /** Format: int64 */
            tokens: number;
        };
        ChunkList: {
            chunks: components["schemas"]["Chunk"][];
            nextCursor: string | null;
        };
        /** @description The circuit of a service opened or closed. */
        CircuitChangedData: {
            from: components["schemas"]["CircuitState"];
            service: components["schemas"]["Service"];
            to: components["schemas"]["CircuitState"];
            /**
             * Format: date-time
             * @description When the service is tried again, if the circuit is open.
             */
            until: string | null;
        };
        /** @description A service failed, is tried again, or works again. For administrators. */
        CircuitChangedEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["CircuitChangedData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "circuit:changed";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description A service failed, is tried again, or works again. For administrators. */
        CircuitChangedWebhook: {
            data: components["schemas"]["CircuitChangedData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "circuit:changed";
        };
        /** @enum {string} */
        CircuitState: "closed" | "open" | "half-open";
        CircuitView: {
            /** Format: date-time */
            changedAt: string | null;
            /** Format: int64 */
            failures: number;
            /** @description What the service last said, for operators; for others one sentence without details of the server. */
            lastError: string | null;
            /**
             * Format: date-time
             * @description When it is tried again, while the circuit is open.
             */
            nextProbeAt: string | null;
            service: components["schemas"]["Service"];
            state: components["schemas"]["CircuitState"];
            /** Format: date-time */
            until: string | null;
        };
        /** @description An item that could not be cleaned. It is tried again, and leaves the list when it is clean. */
        CleanupFailure: {
            /** Format: int64 */
            attempts: number;
            /** @description The last error. */
            error: string;
            /** Format: uuid */
            fileId: string | null;
            /** Format: date-time */
            firstAt: string;
            /** Format: date-time */
            lastAt: string;
            /** @description The job or the task that could not clean it. */
            scope: string;
            /** @description The file, or the key of a blob, in words. */
            subject: string;
        };
        CleanupFailureList: {
            failures: components["schemas"]["CleanupFailure"][];
            /** Format: int64 */
            total: number;
        };
        /** @description What the client believes to have sent. Both are checked if given. */
        ConfirmRequest: {
            /** @description 32 hexadecimal digits, or 24 characters of base64. */
            md5?: string | null;
            /** Format: int64 */
            size?: number | null;
        };
        ConfirmedFile: {
            /** Format: uuid */
            fileId: string;
            status: components["schemas"]["FileStatus"];
        };
        /** @description A new key. The key itself is shown only here. */
        CreatedApiKey: components["schemas"]["ApiKey"] & {
            /** @description Send it as `Authorization: Bearer lf_…`. It cannot be shown again. */
            key: string;
        };
        Dashboard: {
            /** Format: int64 */
            activeBatches: number;
            circuits: components["schemas"]["CircuitView"][];
            /** Format: int64 */
            dlqDepth: number;
            metrics: components["schemas"]["DashboardMetrics"];
            /**
             * Format: int64
             * @description How long the oldest file has waited that a worker could take; 0 if none waits.
             */
            oldestWaitingMs: number;
            queueDepths: {
                [key: string]: number;
            };
            recentErrors: components["schemas"]["RecentError"][];
            statusDistribution: {
                [key: string]: number;
            };
            /** Format: int64 */
            stuckFiles: number;
        };
        /** @description Of the files that became ready or failed within the last day. */
        DashboardMetrics: {
            /**
             * Format: int64
             * @description From confirm to ready, in milliseconds.
             */
            averageProcessingTime: number;
            /**
             * Format: double
             * @description In percent.
             */
            failureRate24h: number;
            /** Format: int64 */
            throughput24h: number;
        };
        /** @description A dead letter as clients see it. */
        DeadLetter: {
            /** Format: int64 */
            attempts: number;
            /** Format: uuid */
            batchId: string | null;
            code: components["schemas"]["FailureCode"];
            /**
             * Format: date-time
             * @description When it will be deleted, unless it is retried.
             */
            deletionAt: string;
            error: string;
            /** Format: date-time */
            failedAt: string;
            /** Format: uuid */
            fileId: string;
            fileName: string;
            /**
             * Format: date-time
             * @description When it was retried before and failed again.
             */
            retriedAt?: string;
            retriedBy?: string;
            stage: components["schemas"]["Stage"];
            tenantId: string;
            userId: string;
        };
        /** @description Which dead letters to retry. Without a field, any value matches. */
        DeadLetterFilter: {
            /** Format: uuid */
            batchId?: string | null;
            code?: components["schemas"]["KnownFailureCode"] | null;
            fingerprint?: string | null;
            scope?: components["schemas"]["Scope"] | null;
            stage?: components["schemas"]["Stage"] | null;
        };
        /** @description The dead letters of one cause, with the newest of them as a sample. */
        DeadLetterGroup: {
            /** @description What would help. */
            advice: string;
            code: components["schemas"]["FailureCode"];
            /** Format: int64 */
            count: number;
            fingerprint: string;
            /** Format: date-time */
            firstSeen: string;
            /** Format: date-time */
            lastSeen: string;
            owners: components["schemas"]["DeadLetterOwners"];
            /** @description Whether a retry can help without another upload. */
            retryHelps: boolean;
            sample: components["schemas"]["DeadLetterSample"];
            stage: components["schemas"]["Stage"];
            /** @description How many of them failed in each of the last 24 hours, the oldest first. */
            trend: number[];
        };
        DeadLetterGroupList: {
            groups: components["schemas"]["DeadLetterGroup"][];
        };
        DeadLetterList: {
            entries: components["schemas"]["DeadLetter"][];
            nextCursor: string | null;
        };
        DeadLetterOwner: {
            /** Format: int64 */
            count: number;
            tenantId: string;
            userId: string;
        };
        /** @description Whose files a group has. */
        DeadLetterOwners: {
            /** Format: int64 */
            count: number;
            /** @description The five with the most. */
            top: components["schemas"]["DeadLetterOwner"][];
        };
        DeadLetterSample: {
            /** Format: uuid */
            fileId: string;
            fileName: string;
            message: string;
        };
        DeliveryList: {
            deliveries: components["schemas"]["DeliveryView"][];
            nextCursor: string | null;
        };
        /** @enum {string} */
        DeliveryStatus: "pending" | "delivered" | "exhausted";
        /** @description A delivery as its owner sees it. */
        DeliveryView: {
            /** Format: int64 */
            attempts: number;
            /** Format: date-time */
            createdAt: string;
            /** Format: int64 */
            durationMs: number | null;
            /** Format: date-time */
            endedAt: string | null;
            error: string | null;
            /** Format: int64 */
            eventId: number | null;
            eventType: string;
            /** Format: uuid */
            id: string;
            /** Format: date-time */
            lastAttemptAt: string | null;
            /**
             * Format: uuid
             * @description The id that the receiver sees.
             */
            messageId: string;
            /** Format: date-time */
            nextAttemptAt: string | null;
            responseExcerpt: string | null;
            /** Format: int64 */
            responseStatus: number | null;
            status: components["schemas"]["DeliveryStatus"];
        };
        /** @description An event. Its type says what `data` has. */
        Event: components["schemas"]["FileStatusChangedEvent"] | components["schemas"]["FileProcessingStalledEvent"] | components["schemas"]["FileCleanedUpEvent"] | components["schemas"]["BatchProgressEvent"] | components["schemas"]["BatchCompletedEvent"] | components["schemas"]["BatchExpiredEvent"] | components["schemas"]["BatchCancelledEvent"] | components["schemas"]["NotificationCreatedEvent"] | components["schemas"]["QueueRateLimitExceededEvent"] | components["schemas"]["CircuitChangedEvent"] | components["schemas"]["JobCompletedEvent"] | components["schemas"]["AlertRaisedEvent"];
        /** @description The failure that a step of a file is about. */
        EventError: {
            class: components["schemas"]["FailureClass"];
            code: components["schemas"]["FailureCode"];
            message: string;
        };
        /** @description Whose event it is: in the body of a webhook that gets the events of several users. */
        EventOwner: {
            tenantId?: string;
            userId?: string;
        };
        /** @description A short-lived replacement for a token, for clients that cannot send headers. */
        EventTicket: {
            /** Format: date-time */
            expiresAt: string;
            ticket: string;
        };
        /**
         * @description The class of the cause, for the metrics.
         * @enum {string}
         */
        FailureClass: "TIMEOUT" | "NETWORK_ERROR" | "DB_ERROR" | "LLM_ERROR" | "STORAGE_ERROR" | "DOCUMENT_ERROR" | "UNKNOWN";
        /** @description Why a file failed. A newer version may have stored a code that this one does not know. */
        FailureCode: components["schemas"]["KnownFailureCode"] | string;
        /** @description What is changed about a file. */
        FileChanges: {
            /** @description Up to 16 names of up to 64 characters, each with a string of up to 512 characters, a number or a boolean. */
            attributes: Record<string, unknown>;
        };
        /** @description The server deleted a file by itself. */
        FileCleanedUpData: {
            /** Format: int64 */
            attempt?: number;
            /** Format: uuid */
            batchId?: string;
            /** Format: uuid */
            fileId: string;
            reason: string;
            /**
             * Format: int64
             * @description In bytes.
             */
            sizeReclaimed: number;
            tenantId: string;
        };
        /** @description The server deleted a file by itself. */
        FileCleanedUpEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["FileCleanedUpData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "file:cleaned-up";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description The server deleted a file by itself. */
        FileCleanedUpWebhook: {
            data: components["schemas"]["FileCleanedUpData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "file:cleaned-up";
        };
        /** @description How many files match. */
        FileCounts: {
            /** @description In each state that one of them is in. */
            byStatus: {
                [key: string]: number;
            };
            /** @description Whether more files exist than are compared with the filters, so that more may match. */
            isCapped: boolean;
            /** Format: int64 */
            total: number;
        };
        FileError: {
            /** Format: date-time */
            at: string | null;
            class: components["schemas"]["FailureClass"];
            /** @description As it was stored: a newer version may have written a code that this one does not know. */
            code: components["schemas"]["FailureCode"];
            /** @description Sentences for the owner: what happened, what to do, and whether it is tried again by itself. */
            message: string;
            stage: components["schemas"]["Stage"] | null;
        };
        /** @description Which files are meant. What is left out matches all. */
        FileFilter: {
            /** Format: uuid */
            batchId?: string | null;
            /** @description The code of the error, or several separated by commas. */
            code?: string | null;
            /**
             * Format: date-time
             * @description Registered at this time or later.
             */
            createdAfter?: string | null;
            /**
             * Format: date-time
             * @description Registered before this time.
             */
            createdBefore?: string | null;
            /** @description The user whose files they are, with `scope=tenant` or `scope=all`. */
            owner?: string | null;
            /** @description Part of the file's name. */
            q?: string | null;
            scope?: components["schemas"]["Scope"] | null;
            /** @description One state, or several separated by commas. */
            status?: string | null;
            /** @description The tenant whose files they are, with `scope=all`. */
            tenantId?: string | null;
            /** @description `true`: only files with warnings. */
            warnings?: boolean | null;
        };
        FileHistory: {
            history: components["schemas"]["HistoryEntry"][];
            nextCursor: string | null;
        };
        FileInProgress: {
            /** Format: int64 */
            attempt: number;
            stage: components["schemas"]["Stage"];
            /** Format: date-time */
            startedAt: string | null;
            worker: string | null;
        };
        FileList: {
            files: components["schemas"]["FileView"][];
            nextCursor: string | null;
        };
        /** @description The worker died or lost track of the file. The file continues by itself. */
        FileProcessingStalledData: {
            /** Format: int64 */
            attempt?: number;
            /** Format: uuid */
            batchId?: string;
            /** Format: uuid */
            fileId: string;
            /** Format: int64 */
            retryCount: number;
            stage: components["schemas"]["Stage"];
        };
        /** @description The worker of a file died or lost track of it. The file continues by itself. */
        FileProcessingStalledEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["FileProcessingStalledData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "file:processing-stalled";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description The worker of a file died or lost track of it. The file continues by itself. */
        FileProcessingStalledWebhook: {
            data: components["schemas"]["FileProcessingStalledData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "file:processing-stalled";
        };
        /** @enum {string} */
        FileStatus: "registered" | "uploaded" | "queued" | "scanning" | "extracting" | "chunking" | "embedding" | "ready" | "failed" | "cancelled" | "deleted";
        /** @description A step of a file from one state to another. */
        FileStatusChangedData: {
            /** @description Left out only in events that an earlier version recorded. */
            actor?: components["schemas"]["Actor"];
            /** Format: int64 */
            attempt?: number;
            /** Format: uuid */
            batchId?: string;
            /** Format: int64 */
            chunkCount?: number;
            error?: components["schemas"]["EventError"];
            /** Format: uuid */
            fileId: string;
            /** @description Left out where the file was registered. */
            from?: components["schemas"]["FileStatus"];
            /** @description Why, where the states do not say it. */
            reason?: string;
            stage?: components["schemas"]["Stage"];
            to: components["schemas"]["FileStatus"];
            /**
             * Format: int64
             * @description With `to: ready`, if something is missing of the file.
             */
            warningCount?: number;
            warnings?: components["schemas"]["Warning"][];
        };
        /** @description A file went from one state to another. */
        FileStatusChangedEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["FileStatusChangedData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "file:status-changed";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description A file went from one state to another. */
        FileStatusChangedWebhook: {
            data: components["schemas"]["FileStatusChangedData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "file:status-changed";
        };
        /** @description A file as clients see it. */
        FileView: {
            /**
             * Format: uuid
             * @description The batch with the files in it, if it is an archive that was unpacked: each of them is a file of its own.
             */
            archiveBatchId: string | null;
            /** Format: int64 */
            attempt: number;
            /** @description Attempts made at each stage, over all retries. */
            attempts: {
                [key: string]: number;
            };
            /** @description What the client noted about the file. */
            attributes: Record<string, unknown> | null;
            /** Format: uuid */
            batchId: string | null;
            /** Format: int64 */
            chunkCount: number | null;
            /** Format: date-time */
            confirmedAt: string | null;
            contentType: string | null;
            /** Format: date-time */
            createdAt: string;
            /**
             * Format: date-time
             * @description When a failed file will be deleted, unless it is retried; when an upload that never came will be.
             */
            deletionAt: string | null;
            error: components["schemas"]["FileError"] | null;
            /** Format: date-time */
            failedAt: string | null;
            /** Format: uuid */
            fileId: string;
            fileName: string;
            inflight: components["schemas"]["FileInProgress"] | null;
            /** Format: int32 */
            maxAttempts: number;
            /** @description The MD5 of its bytes in hexadecimal digits; before they arrived, the one that was declared. */
            md5: string | null;
            nextStage: components["schemas"]["Stage"] | null;
            priority: components["schemas"]["Priority"];
            /**
             * Format: int64
             * @description Its position among its owner's files at its stage; null when it is not counted that far.
             */
            queuePosition: number | null;
            /** Format: date-time */
            readyAt: string | null;
            /** @description The content type of what the operator's extraction service made of it, where there is that. */
            resultType: string | null;
            /**
             * Format: date-time
             * @description When a user last retried it after it had failed or was cancelled, and who.
             */
            retriedAt: string | null;
            retriedBy: string | null;
            /** Format: date-time */
            retryAfter: string | null;
            /**
             * Format: date-time
             * @description When the file may go on, where that is known: its next attempt, a service that is tried again, a rate limit.
             */
            retryAt: string | null;
            /** Format: int64 */
            retryCount: number;
            /**
             * Format: int64
             * @description The same as the number of milliseconds from now, for a countdown.
             */
            retryInMs: number | null;
            /** @description The SHA-256 of its bytes in hexadecimal digits, once the server has read them; before that, the one that was declared. */
            sha256: string | null;
            /** Format: int64 */
            size: number;
            staleness: components["schemas"]["Staleness"];
            status: components["schemas"]["FileStatus"];
            tenantId: string;
            /** @description The page with its trace, where traces are collected and the operator has set `TRACE_URL`. */
            traceUrl: string | null;
            /** Format: date-time */
            updatedAt: string;
            userId: string;
            waitingFor: components["schemas"]["WaitingFor"] | null;
            waitingMessage: string | null;
            /**
             * Format: int64
             * @description How many warnings there are: how much is missing of a file that could be read otherwise.
             */
            warningCount: number;
            /** @description What is missing. Null in a list of files, which has only the number. */
            warnings: components["schemas"]["Warning"][] | null;
        };
        HealthCheck: {
            message?: string;
            status: components["schemas"]["HealthCheckStatus"];
        };
        /** @enum {string} */
        HealthCheckStatus: "ok" | "failed";
        /** @description One step in the history of a file. */
        HistoryEntry: {
            actor: components["schemas"]["Actor"] | null;
            /** Format: date-time */
            at: string;
            /** Format: int64 */
            attempt: number | null;
            errorCode: components["schemas"]["FailureCode"] | null;
            errorMessage: string | null;
            from: components["schemas"]["FileStatus"] | null;
            /** Format: int64 */
            id: number;
            /** @description Why. */
            reason: string;
            stage: components["schemas"]["Stage"] | null;
            to: components["schemas"]["FileStatus"] | null;
            worker: string | null;
        };
        /** @description Which limits are the configured default, and not the tenant's own. */
        IsDefault: {
            bytes: boolean;
            files: boolean;
        };
        /** @description A file as a job. */
        Job: {
            /** Format: int64 */
            attemptCount: number;
            /** @description Whether its result can be downloaded. */
            canDownload: boolean;
            /** Format: date-time */
            completedAt: string | null;
            /** Format: date-time */
            createdAt: string;
            errorCode: components["schemas"]["FailureCode"] | null;
            errorMessage: string | null;
            /** Format: date-time */
            failedAt: string | null;
            fileName: string;
            /** Format: int64 */
            fileSize: number;
            /** Format: uuid */
            id: string;
            isDeadLetter: boolean;
            /** Format: date-time */
            lastAttemptAt: string | null;
            /** Format: int32 */
            maxAttempts: number;
            /** Format: date-time */
            queuedAt: string | null;
            /** Format: date-time */
            retryAfter: string | null;
            status: components["schemas"]["JobStatus"];
            /** Format: date-time */
            updatedAt: string;
        };
        /** @description A maintenance job ended. */
        JobCompletedData: {
            errors: string[];
            job: string;
            metrics: Record<string, unknown>;
            /** Format: uuid */
            runId: string;
        };
        /** @description A maintenance job ended. For administrators. */
        JobCompletedEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["JobCompletedData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "job:completed";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description A maintenance job ended. For administrators. */
        JobCompletedWebhook: {
            data: components["schemas"]["JobCompletedData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "job:completed";
        };
        JobList: {
            jobs: components["schemas"]["Job"][];
            nextCursor: string | null;
        };
        JobState: {
            /** Format: uuid */
            id: string;
            status: components["schemas"]["JobStatus"];
        };
        /**
         * @description The states of a job. There are fewer than those of a file.
         * @enum {string}
         */
        JobStatus: "uploading" | "queued" | "processing" | "complete" | "failed" | "cancelled";
        /** @enum {string} */
        KeyScope: "read" | "upload" | "manage" | "admin";
        /**
         * @description The codes of failures that this version knows.
         * @enum {string}
         */
        KnownFailureCode: "UNSUPPORTED_TYPE" | "NOT_PDF" | "TOO_LARGE" | "INVALID_MAPPING" | "INFECTED" | "GW_4XX" | "GW_5XX" | "GW_TIMEOUT" | "GW_UNAVAILABLE" | "EMBED_ERROR" | "IO_ERROR" | "DB_ERROR" | "STAGE_TIMEOUT" | "MEMORY_ERROR" | "PARSE_ERROR" | "VALIDATION_ERROR" | "NO_TEXT" | "ARCHIVE_FAILED" | "QUOTA_EXCEEDED" | "UNSCANNABLE" | "SCANNER_UNAVAILABLE" | "CHECKSUM_MISMATCH" | "SIZE_MISMATCH" | "BLOB_DAMAGED" | "BLOB_CHANGED" | "WORKER_LOST" | "STUCK_EXHAUSTED" | "CANCELLED" | "UNKNOWN";
        /**
         * @description The codes of warnings that this version knows.
         * @enum {string}
         */
        KnownWarningCode: "TRUNCATED" | "PAGES_UNREADABLE" | "CHARACTERS_UNMAPPED" | "OCR_INCOMPLETE" | "PARTS_NOT_READ" | "MORE_WARNINGS";
        Liveness: {
            status: string;
        };
        LoggedOut: {
            /**
             * Format: int64
             * @description How many sessions ended.
             */
            ended: number;
            /** @description Where the browser can sign out of the identity provider too. */
            providerUrl: string | null;
        };
        LogoutRequest: {
            /** @description Also ends the person's sessions in all other browsers. */
            everywhere?: boolean;
        };
        /** @description A job as its operator sees it. */
        MaintenanceJob: {
            lastRun: components["schemas"]["MaintenanceRun"] | null;
            name: string;
            /** Format: date-time */
            nextRunAt: string | null;
            running: boolean;
            schedule: string;
        };
        MaintenanceJobList: {
            jobs: components["schemas"]["MaintenanceJob"][];
        };
        MaintenanceJobRun: {
            name: string;
            run: components["schemas"]["MaintenanceRun"] | null;
        };
        MaintenanceRun: {
            /** Format: date-time */
            endedAt: string | null;
            errors: string[];
            metrics: Record<string, unknown> | null;
            outcome: components["schemas"]["RunOutcome"];
            /** Format: uuid */
            runId: string;
            /** Format: date-time */
            startedAt: string;
            /** @description The user who started it; null if the schedule did. */
            startedBy: string | null;
            worker: string;
        };
        MarkedRead: {
            /** Format: int64 */
            markedCount: number;
        };
        /**
         * @description What was compared.
         * @enum {string}
         */
        MatchedBy: "words" | "meaning";
        /** @description The body that opens a batch. */
        NewBatch: {
            /** Format: int64 */
            fileCount: number;
            mapping?: Record<string, unknown> | unknown[] | null;
            /** @description Anything that the client wants to find again with the batch: up to 16 KB of JSON. */
            metadata?: Record<string, unknown> | null;
            priority?: components["schemas"]["Priority"];
        };
        /** @description What a client declares about a file before it sends the bytes. */
        NewFile: {
            /** @description Up to 16 names of up to 64 characters, each with a string of up to 512 characters, a number or a boolean. */
            attributes?: Record<string, unknown> | null;
            contentType?: string | null;
            fileName: string;
            /** Format: int64 */
            fileSize: number;
            mapping?: Record<string, unknown> | unknown[] | null;
            /** @description 32 hexadecimal digits, or 24 characters of base64. */
            md5?: string | null;
            /** @description 64 hexadecimal digits, or 44 characters of base64. */
            sha256?: string | null;
        };
        NewFileOrList: components["schemas"]["NewFile"] | components["schemas"]["NewFile"][];
        /** @description A key to create. */
        NewKey: {
            /**
             * Format: date-time
             * @description When it expires; without it, never.
             */
            expiresAt?: string | null;
            /** @description What it is for, for people. */
            name: string;
            role?: components["schemas"]["Role"] | null;
            /** @description What it may be used for. */
            scopes: components["schemas"]["KeyScope"][];
            /** @description The caller's own without it. */
            tenantId?: string | null;
            /** @description The user that it acts for, of the tenant below; the caller without it. */
            userId?: string | null;
        };
        /** @description What to do, and with which files: those that match the filter, or those with these ids. Exactly one of the two is given. */
        NewOperation: {
            action: components["schemas"]["OperationAction"];
            fileIds?: string[] | null;
            filter?: components["schemas"]["FileFilter"] | null;
        };
        /** @description New limits of a tenant. A field that is left out goes back to the default. */
        NewQuota: {
            /** Format: int64 */
            bytes?: number | null;
            /** Format: int64 */
            files?: number | null;
        };
        /** @description Whom a link signs in. */
        NewSignInLink: {
            role?: components["schemas"]["Role"];
            tenantId: string;
            userId: string;
        };
        /** @description The body that registers a webhook. */
        NewWebhook: {
            description?: string | null;
            /** @description Without it, events of every type. */
            eventTypes?: string[] | null;
            scope?: components["schemas"]["Scope"];
            url: string;
        };
        /** @description A notification as its owner sees it. */
        Notification: {
            /** Format: date-time */
            createdAt: string;
            data: Record<string, unknown>;
            /**
             * Format: uuid
             * @description Null, like the name, if it is about no file.
             */
            fileId: string | null;
            fileName: string | null;
            message: string;
            /** Format: uuid */
            notificationId: string;
            /** Format: date-time */
            readAt: string | null;
            /**
             * Format: date-time
             * @description When it was settled by itself, because its file became ready or was deleted. It then counts as read.
             */
            resolvedAt: string | null;
            type: components["schemas"]["NotificationKind"];
        };
        NotificationCreatedData: {
            /** Format: uuid */
            batchId?: string;
            /**
             * Format: uuid
             * @description Left out, like the name, if the notification is about no file.
             */
            fileId?: string;
            fileName?: string;
            message: string;
            /** Format: uuid */
            notificationId: string;
            type: components["schemas"]["NotificationKind"];
        };
        /** @description The user has a new notification. */
        NotificationCreatedEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["NotificationCreatedData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "notification:created";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description The user has a new notification. */
        NotificationCreatedWebhook: {
            data: components["schemas"]["NotificationCreatedData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "notification:created";
        };
        /** @enum {string} */
        NotificationKind: "file-failure-notification" | "file-deletion-warning" | "upload-expired-notification" | "webhook-disabled-notification" | "batch-expired-notification";
        NotificationList: {
            nextCursor: string | null;
            notifications: components["schemas"]["Notification"][];
            /**
             * Format: int64
             * @description Counted up to 1000.
             */
            unreadCount: number;
        };
        OpenLinkRequest: {
            /** @description The code in the link. */
            code: string;
            /** @description Whether to sign in. Without it the response only says whom the link signs in. */
            confirm?: boolean;
        };
        OpenedBatch: {
            /** Format: uuid */
            batchId: string;
            /** Format: date-time */
            expiresAt: string;
            /** Format: int64 */
            fileCount: number;
            status: components["schemas"]["BatchStatus"];
        };
        /** @description Whom a link signs in, and the session if it did. */
        OpenedLink: {
            role: components["schemas"]["Role"];
            session: components["schemas"]["SessionDetails"] | null;
            tenantId: string;
            userId: string;
        };
        /** @enum {string} */
        OperationAction: "retry" | "cancel" | "delete";
        /** @description A file that an operation did not change, and why. */
        OperationError: {
            code: string;
            /** Format: uuid */
            fileId: string;
            fileName?: string;
            message: string;
        };
        OperationFilter: {
            /** Format: uuid */
            batchId: string | null;
            /** @description One code, or several separated by commas. */
            code: string | null;
            /** Format: date-time */
            createdAfter?: string;
            /** Format: date-time */
            createdBefore?: string;
            fingerprint: string | null;
            owner?: string;
            q?: string;
            stage: components["schemas"]["Stage"] | null;
            status?: string;
            tenantId?: string;
            warnings?: boolean;
        };
        OperationList: {
            nextCursor: string | null;
            operations: components["schemas"]["OperationView"][];
        };
        /** @enum {string} */
        OperationStatus: "canary" | "running" | "completed" | "stopped";
        /** @description An operation as clients see it. */
        OperationView: {
            action: components["schemas"]["OperationAction"];
            /** Format: date-time */
            createdAt: string;
            createdBy: string;
            /**
             * Format: int64
             * @description How many files were retried, cancelled or deleted. With `skippedCount` and `errorCount` it says how far the operation is.
             */
            doneCount: number;
            /** Format: date-time */
            endedAt: string | null;
            /** Format: int64 */
            errorCount: number;
            /** @description The first of the files that could not be retried. */
            errors: components["schemas"]["OperationError"][];
            filter: components["schemas"]["OperationFilter"];
            /** Format: uuid */
            operationId: string;
            reason: string | null;
            /**
             * Format: int64
             * @description The same for a retry; 0 otherwise.
             */
            retriedCount: number;
            scope: components["schemas"]["Scope"];
            /** @description The first of the files that were left alone. */
            skipped: components["schemas"]["OperationError"][];
            /** Format: int64 */
            skippedCount: number;
            status: components["schemas"]["OperationStatus"];
            /**
             * Format: int64
             * @description How many files matched when it began. Null where they were not counted: for dead letters, and for too many files.
             */
            totalCount: number | null;
            /** Format: date-time */
            updatedAt: string;
        };
        OrphanBlobs: {
            /** Format: int64 */
            count: number;
            samples: string[];
            /** Format: int64 */
            totalSize: number;
        };
        OrphanReport: {
            abandonedUploads: components["schemas"]["AbandonedUploads"];
            /** Format: date-time */
            lastScanTime: string | null;
            orphanBlobs: components["schemas"]["OrphanBlobs"];
        };
        PauseView: {
            /** Format: date-time */
            at: string;
            by: string;
        };
        /** @description A part of a page. */
        Place: {
            box: components["schemas"]["Box"];
            /**
             * Format: int64
             * @description From 1.
             */
            page: number;
        };
        /** @enum {string} */
        Priority: "high" | "normal" | "low";
        /** @description A stage reached its rate limit. */
        QueueRateLimitExceededData: {
            /** @description The name of the stage's queue. */
            queue: string;
            /** Format: date-time */
            timestamp: string;
        };
        /** @description A stage reached its rate limit. For administrators. */
        QueueRateLimitExceededEvent: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["QueueRateLimitExceededData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @description The tenant whose event it is; left out if it is the system's */
            tenantId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "queue:rate-limit-exceeded";
            /** @description The user whose event it is; left out if it is the system's */
            userId?: string;
        };
        /** @description A stage reached its rate limit. For administrators. */
        QueueRateLimitExceededWebhook: {
            data: components["schemas"]["QueueRateLimitExceededData"] & components["schemas"]["EventOwner"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "queue:rate-limit-exceeded";
        };
        QueueStatus: {
            circuits: components["schemas"]["CircuitView"][];
            queues: {
                [key: string]: components["schemas"]["QueueView"];
            };
            recentHours: components["schemas"]["ThroughputHour"][];
            schedules: components["schemas"]["MaintenanceJob"][];
            throughput: components["schemas"]["Throughput"];
            workers: components["schemas"]["WorkerView"][];
        };
        QueueView: {
            /**
             * Format: date-time
             * @description When the next file may start, if a rate limit delays the stage.
             */
            limitedUntil: string | null;
            paused: components["schemas"]["PauseView"] | null;
            /**
             * Format: int64
             * @description Files that wait for their next attempt.
             */
            retrying: number;
            /** Format: int64 */
            running: number;
            /**
             * Format: int64
             * @description Files that could be claimed now.
             */
            waiting: number;
        };
        QuotaAmounts: {
            /** Format: int64 */
            free: number;
            /** Format: int64 */
            limit: number;
            /** Format: int64 */
            reserved: number;
            /** Format: int64 */
            used: number;
        };
        QuotaView: {
            bytes: components["schemas"]["QuotaAmounts"];
            files: components["schemas"]["QuotaAmounts"];
            tenantId: string;
        };
        Readiness: {
            checks: {
                [key: string]: components["schemas"]["HealthCheck"];
            };
            status: components["schemas"]["ReadinessStatus"];
        };
        /**
         * @description Whether the process can do its work.
         * @enum {string}
         */
        ReadinessStatus: "ready" | "not ready";
        RecentError: {
            code: components["schemas"]["FailureCode"];
            error: string;
            /** Format: uuid */
            fileId: string;
            fileName: string;
            stage: components["schemas"]["Stage"];
            /** Format: date-time */
            timestamp: string;
        };
        /** @description A refusal as clients see it. */
        Refusal: {
            error: components["schemas"]["RefusalError"];
        };
        /**
         * @description Why a request was refused. A later version may have more codes.
         * @enum {string}
         */
        RefusalCode: "ANOTHER_SESSION" | "AUTH_UNAVAILABLE" | "BATCH_FULL" | "BATCH_NOT_ACTIVE" | "BATCH_NOT_FOUND" | "BLOB_CHANGED" | "BODY_BROKEN" | "BODY_TOO_LARGE" | "CHECKSUM_MISMATCH" | "CIRCUIT_NOT_FOUND" | "CROSS_SITE_REQUEST" | "DATABASE_FILE_GONE" | "DATABASE_UNAVAILABLE" | "DELIVERY_NOT_FOUND" | "EVENT_STREAMS_EXHAUSTED" | "FILE_DAMAGED" | "FILE_DELETED" | "FILE_NOT_FOUND" | "FORBIDDEN" | "IDEMPOTENCY_KEY_REUSED" | "INSUFFICIENT_SCOPE" | "INTERNAL" | "INVALID_ATTRIBUTES" | "INVALID_CONTENT_TYPE" | "INVALID_CURSOR" | "INVALID_EVENT_TYPE" | "INVALID_FILE_COUNT" | "INVALID_FILE_NAME" | "INVALID_FILE_SIZE" | "INVALID_IDEMPOTENCY_KEY" | "INVALID_JSON" | "INVALID_LINK" | "INVALID_MAPPING" | "INVALID_MD5" | "INVALID_METADATA" | "INVALID_QUERY" | "INVALID_REQUEST" | "INVALID_SHA256" | "INVALID_SIGNATURE" | "INVALID_STATE" | "INVALID_TICKET" | "INVALID_TOKEN" | "INVALID_UPGRADE" | "INVALID_UPLOAD_HEADER" | "INVALID_WEBHOOK_URL" | "JOB_NOT_FOUND" | "JOB_RUNNING" | "JOINED_UPLOAD" | "KEY_NOT_FOUND" | "METHOD_NOT_ALLOWED" | "NOTHING_TO_FORCE" | "NOTIFICATION_NOT_FOUND" | "NOT_ACCEPTABLE" | "NOT_EXTRACTED" | "NOT_FOUND" | "NO_DIRECT_UPLOADS" | "NO_SCANNER" | "OFFSET_MISMATCH" | "OPERATION_NOT_FOUND" | "PIECE_CHECKSUM_MISMATCH" | "PRIVATE_WEBHOOK_ADDRESS" | "QUEUE_NOT_FOUND" | "QUOTA_EXCEEDED" | "REQUEST_TIMEOUT" | "SERVER_BUSY" | "SESSION_EXPIRED" | "SIGN_IN_EXPIRED" | "SIGN_IN_REFUSED" | "SIGN_IN_UNAVAILABLE" | "SIZE_MISMATCH" | "STAGE_NOT_REACHED" | "STORAGE_FULL" | "STORAGE_UNAVAILABLE" | "TICKET_EXPIRED" | "TOKEN_EXPIRED" | "TOO_LARGE" | "TOO_MANY_ARCHIVES" | "TOO_MANY_AUTH_FAILURES" | "TOO_MANY_BATCHES" | "TOO_MANY_CONNECTIONS" | "TOO_MANY_DELIVERIES" | "TOO_MANY_EVENT_STREAMS" | "TOO_MANY_KEYS" | "TOO_MANY_REGISTRATIONS" | "TOO_MANY_WEBHOOKS" | "TOO_MANY_WRITES" | "UNAUTHENTICATED" | "UNKNOWN_HOST" | "UNKNOWN_WEBHOOK_HOST" | "UNSUPPORTED_CHECKSUM" | "UNSUPPORTED_MEDIA_TYPE" | "UNSUPPORTED_TUS_VERSION" | "UPLOAD_BROKEN" | "UPLOAD_CHANGED" | "UPLOAD_INTERRUPTED" | "UPLOAD_IN_PROGRESS" | "UPLOAD_LOCKED" | "UPLOAD_MISSING" | "UPLOAD_NOT_FOUND" | "UPLOAD_STALLED" | "UPLOAD_TOO_SLOW" | "UPLOAD_URL_EXPIRED" | "WEBHOOK_DISABLED" | "WEBHOOK_NOT_FOUND";
        RefusalError: {
            code: components["schemas"]["RefusalCode"];
            details: Record<string, unknown>;
            /** @description For a person. */
            message: string;
            /** @description Whether the same request may succeed later. */
            retryable: boolean;
        };
        /** @description The only response that contains the secret. */
        RegisteredWebhook: {
            /** Format: date-time */
            createdAt: string;
            description: string | null;
            enabled: boolean;
            eventTypes: string[] | null;
            /** Format: uuid */
            id: string;
            scope: components["schemas"]["Scope"];
            secret: string;
            url: string;
        };
        /** @description How far the re-embedding is, or how the last one ended. */
        ReindexView: {
            /**
             * Format: int64
             * @description Those that are done with: re-embedded, deleted or processed again in the meantime.
             */
            done: number;
            /** Format: date-time */
            endedAt: string | null;
            /**
             * Format: int64
             * @description Those that stay as they were, because they could not be re-embedded.
             */
            failed: number;
            isRunning: boolean;
            /** @description How it ended, or what it waits for. */
            message: string | null;
            /** @description The model that files get vectors of. */
            model: string;
            /**
             * Format: int64
             * @description Files of another model now.
             */
            remaining: number;
            /**
             * Format: date-time
             * @description Null if it was never started.
             */
            startedAt: string | null;
            startedBy: string | null;
            /**
             * Format: int64
             * @description Files of another model when it was started.
             */
            total: number;
        };
        /** @enum {string} */
        Remedy: "resume_stage" | "release_stuck" | "probe_circuit" | "start_worker" | "wait" | "upload_again";
        RetriedDeadLetter: {
            /** Format: uuid */
            fileId: string;
            status: components["schemas"]["FileStatus"];
            success: boolean;
        };
        RetriedJob: {
            job: components["schemas"]["JobState"];
            message: string;
        };
        RetriedStuckFile: {
            /** Format: uuid */
            fileId: string;
            newStatus: components["schemas"]["FileStatus"];
            previousStatus: components["schemas"]["FileStatus"];
            /** Format: int64 */
            retryCount: number;
            success: boolean;
        };
        /** @description The result of retrying all stuck files. */
        RetriedStuckFiles: {
            errors: components["schemas"]["RetryError"][];
            /** Format: int64 */
            retriedCount: number;
            /** Format: int64 */
            skippedCount: number;
            success: boolean;
        };
        RetryError: {
            error: string;
            /** Format: uuid */
            fileId: string;
        };
        /** @description How to retry a file. */
        RetryRequest: {
            fromStage?: components["schemas"]["Stage"] | null;
        };
        /** @enum {string} */
        Role: "member" | "tenant_admin" | "operator";
        RotatedSecret: {
            /** Format: uuid */
            id: string;
            /** Format: date-time */
            oldSecretValidUntil: string;
            secret: string;
        };
        RunList: {
            nextCursor: string | null;
            runs: components["schemas"]["MaintenanceRun"][];
        };
        /** @enum {string} */
        RunOutcome: "completed" | "failed" | "running" | "interrupted";
        /** @enum {string} */
        S3Method: "GET" | "POST" | "PUT" | "DELETE";
        /**
         * @description A request to the S3 API that a client wants to send for the bytes of a file. Other fields are ignored, so that clients may
         *     send what they have.
         */
        S3Request: {
            method: components["schemas"]["S3Method"];
            /**
             * Format: int32
             * @description From 1 to 10000.
             */
            partNumber?: number | null;
            /** @description The multipart upload. Without it, `PUT` stores the whole object and `POST` begins a multipart upload. */
            uploadId?: string | null;
        };
        /** @enum {string} */
        Scope: "own" | "tenant" | "all";
        /** @description How a query was understood. */
        SearchExplanation: {
            /**
             * Format: double
             * @description Passages with a lower score are left out.
             */
            floor: number;
            mode: components["schemas"]["SearchMode"];
            /** @description The model whose vectors were compared. */
            model: string | null;
            /**
             * Format: double
             * @description The usual similarity of a question and its answer, with this model.
             */
            related: number | null;
            /** @description The words that were searched, the rarest first. */
            terms: components["schemas"]["SearchTerm"][];
            /**
             * Format: double
             * @description The usual similarity of texts that have nothing to do with each other, with this model.
             */
            unrelated: number | null;
        };
        /** @description A passage: a chunk of a file, or several that follow each other. */
        SearchHit: {
            /** Format: uuid */
            batchId: string | null;
            /** Format: int64 */
            charEnd: number;
            /**
             * Format: int64
             * @description Where the passage is in the file's text.
             */
            charStart: number;
            /** @description Why it was found, with `explain`. */
            explanation?: components["schemas"]["SearchHitExplanation"];
            /** Format: uuid */
            fileId: string;
            fileName: string;
            /**
             * Format: int64
             * @description The first and the last chunk of the passage.
             */
            firstOrdinal: number;
            heading: string | null;
            /** @description The headings that the best chunk is under, from the top of the document down to its own. */
            headings: string[];
            /** Format: int64 */
            lastOrdinal: number;
            /** @description Whether it has words of the query, and whether its meaning is close. */
            matched: components["schemas"]["MatchedBy"][];
            /**
             * Format: int64
             * @description The chunk that fits best.
             */
            ordinal: number;
            /** Format: int64 */
            page: number | null;
            /** @description Where the best chunk is on its pages, if that is known. */
            places: components["schemas"]["Place"][];
            /**
             * Format: double
             * @description How well it fits, from 0 to 1: about the share of such hits that answer their query.
             */
            score: number;
            snippet: string;
        };
        /** @description Why a passage was found. */
        SearchHitExplanation: {
            /**
             * Format: double
             * @description The share of the query's words that it has, by their weights.
             */
            coverage: number;
            /**
             * Format: double
             * @description The similarity on the scale of the model: 0 for what is unrelated, 1 for an answer.
             */
            meaning: number | null;
            /**
             * Format: double
             * @description The cosine of the two vectors. Null: there are none of the same model.
             */
            similarity: number | null;
            /** @description The words of the query that it has. */
            terms: string[];
            /**
             * Format: double
             * @description How well the words fit (BM25), relative to the weights of all words of the query.
             */
            words: number;
        };
        /**
         * @description What is compared with the query: the words, the meaning, or both. Without a mode, it is both.
         * @enum {string}
         */
        SearchMode: "words" | "meaning" | "hybrid";
        /** @description What to search for, and in which of the caller's files. What is left out matches all files. */
        SearchRequest: {
            /** @description Attributes that a file must have, with these values: strings, numbers or booleans, compared as text. */
            attributes?: Record<string, unknown> | null;
            /** Format: uuid */
            batchId?: string | null;
            /**
             * Format: date-time
             * @description Registered at this time or later.
             */
            createdAfter?: string | null;
            /**
             * Format: date-time
             * @description Registered before this time.
             */
            createdBefore?: string | null;
            /** @description `true`: say why each hit was found. */
            explain?: boolean | null;
            /** Format: uuid */
            fileId?: string | null;
            /** @description Several files, instead of one. */
            fileIds?: string[] | null;
            /** @default 10 */
            limit?: number | null;
            mode?: components["schemas"]["SearchMode"] | null;
            /** @description A part of the file's name. */
            name?: string | null;
            /**
             * @description How many of the best hits to skip.
             * @default 0
             */
            offset?: number | null;
            query: string;
            /** @description Content types. One that ends with `/`, as `image/` does, stands for all that begin with it. */
            types?: string[] | null;
        };
        SearchResponse: {
            /** @description How the query was understood, with `explain`. */
            explanation?: components["schemas"]["SearchExplanation"];
            /** @description Whether there are more hits behind these. */
            hasMore: boolean;
            hits: components["schemas"]["SearchHit"][];
            /** @description Why there may be more than was found. */
            warning?: string;
        };
        /** @description A word of a query. */
        SearchTerm: {
            /**
             * Format: double
             * @description In how many of the caller's chunks it is; for common words an estimate.
             */
            chunks: number;
            term: string;
            /**
             * Format: double
             * @description How much it counts.
             */
            weight: number;
        };
        /**
         * @description An external service that Landfall depends on.
         * @enum {string}
         */
        Service: "gateway" | "embeddings" | "scanner" | "storage";
        /** @description A session of the page. */
        SessionDetails: {
            /** @description To be sent as `X-CSRF-Token` with every request that changes something. */
            csrfToken: string;
            /**
             * Format: date-time
             * @description When it ends, whatever the person does.
             */
            expiresAt: string;
            /**
             * Format: date-time
             * @description When it ends if the person does nothing.
             */
            idleUntil: string;
            role: components["schemas"]["Role"];
            tenantId: string;
            userId: string;
        };
        /** @description Who is signed in in this browser, and how people sign in. */
        SessionView: {
            session: components["schemas"]["SessionDetails"] | null;
            ways: components["schemas"]["SignInWays"];
        };
        SettingView: {
            description: string;
            /** @example PORT */
            name: string;
            /** @description `default`, `environment` or `.env`. */
            source: string;
            /** @description Empty if it is not set. Secrets, and passwords in URLs, are shown as `***`. */
            value: string;
        };
        SettingsGroup: {
            /** @example Server */
            name: string;
            settings: components["schemas"]["SettingView"][];
        };
        SettingsView: {
            groups: components["schemas"]["SettingsGroup"][];
        };
        /** @description A link that signs a person in once. */
        SignInLink: {
            /** Format: date-time */
            expiresAt: string;
            url: string;
        };
        /** @description How people can sign in on this server. */
        SignInWays: {
            /** @description With a link that `landfall open` prints. */
            link: boolean;
            /** @description With the identity provider, at `/auth/login`. */
            provider: boolean;
            /** @description With a token. */
            token: boolean;
        };
        /** @description Where and how to send a request to the object store. */
        SignedS3Request: {
            /** @description The request must have these. */
            headers: {
                [key: string]: string;
            };
            url: string;
        };
        /**
         * @description The stages, in their order.
         * @enum {string}
         */
        Stage: "scan" | "extract" | "chunk" | "embed";
        /** @description A stage, and what is at it. */
        StageLoad: {
            /**
             * Format: date-time
             * @description Since when the first file waits that a worker could take.
             */
            oldestAt: string | null;
            /**
             * Format: int64
             * @description Files that wait for their next attempt.
             */
            retrying: number;
            /** Format: int64 */
            running: number;
            stage: components["schemas"]["Stage"];
            /**
             * Format: int64
             * @description Files that wait for anything but their next attempt.
             */
            waiting: number;
            /**
             * Format: int64
             * @description Processes that work at it.
             */
            workers: number;
        };
        /** @description Whether a stage is paused. */
        StagePause: {
            paused: boolean;
            stage: components["schemas"]["Stage"];
        };
        /** @description Whether a file that should be moving makes no progress. */
        Staleness: {
            message: string | null;
            /** Format: int64 */
            sinceMs: number;
            stale: boolean;
            stuck: components["schemas"]["StuckReason"] | null;
        };
        /** @description What came of the notifications of an object store. */
        StorageEventsTaken: {
            /** @description How many files go on because of them. */
            adopted: number;
            /** @description What Azure's Event Grid wants back when a subscription begins. */
            validationResponse: string | null;
        };
        /** @enum {string} */
        StreamEndCode: "SERVER_STOPPING" | "EVENTS_UNAVAILABLE" | "TOKEN_EXPIRED" | "TOO_SLOW" | "CAUGHT_UP";
        /** @description Why a stream ends. */
        StreamEndData: {
            code: components["schemas"]["StreamEndCode"];
        };
        /** @description The last message, with server-sent events. A WebSocket is closed with the code as its reason. */
        StreamEndMessage: {
            data: components["schemas"]["StreamEndData"];
            /** @constant */
            type: "stream:end";
        };
        /** @description Events may be missing between these two ids. */
        StreamGapData: {
            /** Format: int64 */
            after: number;
            /** Format: int64 */
            resumesAfter: number;
        };
        /** @description Events are missing. Load the current state. */
        StreamGapMessage: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["StreamGapData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string | null;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @constant */
            type: "stream:gap";
        };
        /** @description A message of a stream: an event, or a message about the stream itself. */
        StreamMessage: components["schemas"]["Event"] | components["schemas"]["StreamOpenMessage"] | components["schemas"]["StreamGapMessage"] | components["schemas"]["StreamResetMessage"] | components["schemas"]["StreamEndMessage"];
        /** @description The stream begins after `id`. */
        StreamOpenMessage: {
            /** Format: date-time */
            at: string;
            data: Record<string, unknown>;
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string | null;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @constant */
            type: "stream:open";
        };
        /** @description The server's database was restored from a backup since the client saw the event `after`. */
        StreamResetData: {
            /** Format: int64 */
            after: number;
            /** @description `restored`. */
            reason: string;
            /** Format: int64 */
            resumesAfter: number;
        };
        /** @description The database was restored. Load the current state. */
        StreamResetMessage: {
            /** Format: date-time */
            at: string;
            data: components["schemas"]["StreamResetData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup
             */
            epoch?: string | null;
            /**
             * Format: int64
             * @description Ids ascend, with gaps
             */
            id: number;
            /** @constant */
            type: "stream:reset";
        };
        /** @description A stuck file as its owner sees it. */
        StuckFile: {
            /** Format: uuid */
            batchId: string | null;
            fileName: string;
            /** Format: uuid */
            id: string;
            message: string;
            reason: components["schemas"]["StuckReason"];
            /** Format: int64 */
            retryCount: number;
            status: components["schemas"]["FileStatus"];
            /**
             * Format: int64
             * @description In milliseconds.
             */
            stuckDuration: number;
            /** Format: date-time */
            updatedAt: string;
        };
        StuckFileList: {
            files: components["schemas"]["StuckFile"][];
            total: number;
            /** @description How many files wait at each stage that no worker runs. */
            withoutWorkers: {
                [key: string]: number;
            };
        };
        /** @enum {string} */
        StuckReason: "claim_broken" | "unconfirmed" | "not_due";
        TenantList: {
            nextCursor: string | null;
            tenants: components["schemas"]["TenantView"][];
        };
        TenantLoad: {
            /** Format: date-time */
            oldestAt: string | null;
            /** Format: int64 */
            running: number;
            tenantId: string;
            /** Format: int64 */
            waiting: number;
        };
        /** @description A tenant in the list of all. */
        TenantView: {
            bytes: components["schemas"]["QuotaAmounts"];
            files: components["schemas"]["QuotaAmounts"];
            isDefault: components["schemas"]["IsDefault"];
            tenantId: string;
        };
        /** @description Over the hours that are shown. */
        Throughput: {
            /**
             * Format: int64
             * @description From confirm to ready.
             */
            p50Ms: number | null;
            /** Format: int64 */
            p95Ms: number | null;
            /**
             * Format: double
             * @description The second of these in percent of the first; null if none was retried.
             */
            retrySuccessRate: number | null;
            /** Format: int64 */
            totalAttemptsTimedOut: number;
            /** Format: int64 */
            totalCompleted: number;
            /** Format: int64 */
            totalFailed: number;
            /**
             * Format: int64
             * @description Attempts that failed, whether or not their file was tried again, and those of them that timed out.
             */
            totalFailedAttempts: number;
            /**
             * Format: int64
             * @description Files that users retried after they had failed or were cancelled, and files that became ready after that.
             */
            totalRetried: number;
            /** Format: int64 */
            totalRetriedReady: number;
            /** Format: int64 */
            totalTimedOut: number;
        };
        ThroughputHour: {
            attemptsByClass: {
                [key: string]: number;
            };
            /** Format: int64 */
            attemptsTimedOut: number;
            byClass: {
                [key: string]: number;
            };
            /** Format: int64 */
            completed: number;
            /**
             * Format: int64
             * @description All that failed, including those that timed out.
             */
            failed: number;
            /**
             * Format: int64
             * @description Attempts that failed, whether or not their file was tried again.
             */
            failedAttempts: number;
            /** Format: date-time */
            hour: string;
            /**
             * Format: int64
             * @description From confirm to ready, less than a tenth off.
             */
            p50Ms: number | null;
            /** Format: int64 */
            p95Ms: number | null;
            /**
             * Format: int64
             * @description Files that users retried, and retried files that became ready.
             */
            retried: number;
            /** Format: int64 */
            retriedReady: number;
            /** Format: int64 */
            timedOut: number;
        };
        /** @description Where and how to send the bytes of one file. */
        UploadTicket: {
            /**
             * Format: date-time
             * @description When the URL expires. Ask for a fresh one then; the registration lives longer.
             */
            expiresAt: string;
            /**
             * Format: int64
             * @description The same as a number of milliseconds, for a client whose clock may be wrong.
             */
            expiresInMs: number;
            /** Format: uuid */
            fileId: string;
            headers: {
                [key: string]: string;
            };
            method: string;
            uploadUrl: string;
        };
        UploadTicketOrList: components["schemas"]["UploadTicket"] | components["schemas"]["UploadTicket"][];
        /** @description The response to the bytes of a file. */
        UploadedFile: {
            /** Format: uuid */
            fileId: string;
            md5: string;
            /** Format: int64 */
            size: number;
            status: components["schemas"]["FileStatus"];
        };
        /** @enum {string} */
        WaitingFor: "upload" | "paused" | "no_workers" | "circuit" | "retry" | "rate_limit" | "isolation" | "worker" | "members";
        /** @description What is missing of a file that could be read otherwise. */
        Warning: {
            /** @description As it was stored: a newer version may have written a code that this one does not know. */
            code: components["schemas"]["WarningCode"];
            /** @description What happened, what is missing, and what to do. */
            message: string;
            /**
             * Format: int64
             * @description The first page that it is about, from 1.
             */
            page: number | null;
        };
        /** @description What is missing of a file. A newer version may have stored a code that this one does not know. */
        WarningCode: components["schemas"]["KnownWarningCode"] | string;
        /** @description The body that changes a webhook. A field that is left out stays as it is. */
        WebhookChanges: {
            description?: string | null;
            enabled?: boolean | null;
            /** @description `null`: every type. */
            eventTypes?: string[] | null;
            url?: string | null;
        };
        WebhookList: {
            nextCursor: string | null;
            webhooks: components["schemas"]["WebhookView"][];
        };
        /** @description The body of a webhook. */
        WebhookMessage: components["schemas"]["FileStatusChangedWebhook"] | components["schemas"]["FileProcessingStalledWebhook"] | components["schemas"]["FileCleanedUpWebhook"] | components["schemas"]["BatchProgressWebhook"] | components["schemas"]["BatchCompletedWebhook"] | components["schemas"]["BatchExpiredWebhook"] | components["schemas"]["BatchCancelledWebhook"] | components["schemas"]["NotificationCreatedWebhook"] | components["schemas"]["QueueRateLimitExceededWebhook"] | components["schemas"]["CircuitChangedWebhook"] | components["schemas"]["JobCompletedWebhook"] | components["schemas"]["AlertRaisedWebhook"] | components["schemas"]["WebhookTestWebhook"];
        /** @description What a test delivery of a webhook has. */
        WebhookTestData: {
            message: string;
            /** Format: uuid */
            webhookId: string;
        };
        /** @description A test that was asked for. */
        WebhookTestWebhook: {
            data: components["schemas"]["WebhookTestData"];
            /**
             * Format: uuid
             * @description Changes when the database is restored from a backup. A test has none
             */
            epoch?: string | null;
            /**
             * Format: date-time
             * @description When the event happened
             */
            timestamp: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "webhook:test";
        };
        /** @description A webhook as its owner sees it: without the secret. */
        WebhookView: {
            /** Format: date-time */
            createdAt: string;
            createdBy: string;
            description: string | null;
            /** Format: date-time */
            disabledAt: string | null;
            disabledReason: string | null;
            enabled: boolean;
            /** @description `null`: every type. */
            eventTypes: string[] | null;
            /**
             * Format: date-time
             * @description Since when no delivery succeeded there.
             */
            failingSince: string | null;
            /** Format: uuid */
            id: string;
            /**
             * Format: date-time
             * @description Until when the secret before the last rotation is also used to sign.
             */
            oldSecretValidUntil: string | null;
            scope: components["schemas"]["Scope"];
            /** Format: date-time */
            updatedAt: string;
            url: string;
        };
        WorkerView: {
            /** Format: date-time */
            heartbeatAt: string;
            name: string;
            stages: string;
            /** Format: date-time */
            startedAt: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    openConsole: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    openDocs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redirects to the page */
            307: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    showDocs: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name of a file of the page */
                asset: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    listJobs: {
        parameters: {
            query?: {
                status?: components["schemas"]["JobStatus"];
                limit?: number;
                /** @description How many jobs to leave out at the beginning. */
                offset?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "jobs": [
                     *         {
                     *           "attemptCount": 1,
                     *           "canDownload": true,
                     *           "completedAt": null,
                     *           "createdAt": "2026-01-02T03:04:05Z",
                     *           "errorCode": "NO_TEXT",
                     *           "errorMessage": "There is no text in the document.",
                     *           "failedAt": "2026-01-02T03:05:41Z",
                     *           "fileName": "scan.pdf",
                     *           "fileSize": 90412,
                     *           "id": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *           "isDeadLetter": true,
                     *           "lastAttemptAt": "2026-01-02T03:05:41Z",
                     *           "maxAttempts": 4,
                     *           "queuedAt": "2026-01-02T03:04:09Z",
                     *           "retryAfter": null,
                     *           "status": "failed",
                     *           "updatedAt": "2026-01-02T03:05:41Z"
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["JobList"];
                };
            };
        };
    };
    showJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "attemptCount": 1,
                     *       "canDownload": true,
                     *       "completedAt": null,
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "errorCode": "NO_TEXT",
                     *       "errorMessage": "There is no text in the document.",
                     *       "failedAt": "2026-01-02T03:05:41Z",
                     *       "fileName": "scan.pdf",
                     *       "fileSize": 90412,
                     *       "id": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *       "isDeadLetter": true,
                     *       "lastAttemptAt": "2026-01-02T03:05:41Z",
                     *       "maxAttempts": 4,
                     *       "queuedAt": "2026-01-02T03:04:09Z",
                     *       "retryAfter": null,
                     *       "status": "failed",
                     *       "updatedAt": "2026-01-02T03:05:41Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Job"];
                };
            };
        };
    };
    downloadJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description An attachment with the file's name */
                    "Content-Disposition"?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    retryJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "job": {
                     *         "id": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *         "status": "queued"
                     *       },
                     *       "message": "Job queued for retry"
                     *     }
                     */
                    "application/json": components["schemas"]["RetriedJob"];
                };
            };
        };
    };
    describeApi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "info": {
                     *         "title": "Landfall",
                     *         "version": "0.1.0"
                     *       },
                     *       "openapi": "3.1.0",
                     *       "paths": {}
                     *     }
                     */
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    listAuditLog: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description The name of the user who asked. */
                actor?: string;
                /** @description The operation, such as `deleteFile`. */
                action?: string;
                outcome?: components["schemas"]["AuditOutcome"];
                /** @description The address of the client. */
                address?: string;
                /** @description From this time on. */
                since?: string;
                /** @description Before this time. */
                until?: string;
                /**
                 * @description `tenant`: the actions of the tenant's users and those about its files, for its administrators. `all`: everything, for
                 *     operators. Without it, all that the caller may see.
                 */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "entries": [
                     *         {
                     *           "action": "pauseQueue",
                     *           "actorRole": "operator",
                     *           "actorTenantId": "operations",
                     *           "actorUserId": "olga",
                     *           "address": "192.0.2.7",
                     *           "at": "2026-01-02T03:00:00Z",
                     *           "code": null,
                     *           "credential": "token",
                     *           "id": 92,
                     *           "method": "POST",
                     *           "outcome": "done",
                     *           "path": "/api/v2/admin/queues/embed/pause",
                     *           "requestId": "5b0f6c1e-3c52-4c57-9a53-8d3a4f6f2d10",
                     *           "status": 200,
                     *           "targetTenantId": null,
                     *           "targetUserId": null
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["AuditEntryList"];
                };
            };
        };
    };
    exportAuditLog: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description The name of the user who asked. */
                actor?: string;
                /** @description The operation, such as `deleteFile`. */
                action?: string;
                outcome?: components["schemas"]["AuditOutcome"];
                /** @description The address of the client. */
                address?: string;
                /** @description From this time on. */
                since?: string;
                /** @description Before this time. */
                until?: string;
                /**
                 * @description `tenant`: the actions of the tenant's users and those about its files, for its administrators. `all`: everything, for
                 *     operators. Without it, all that the caller may see.
                 */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
        };
    };
    probeCircuit: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                service: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "changedAt": null,
                     *       "failures": 0,
                     *       "lastError": "connection refused",
                     *       "nextProbeAt": null,
                     *       "service": "gateway",
                     *       "state": "closed",
                     *       "until": null
                     *     }
                     */
                    "application/json": components["schemas"]["CircuitView"];
                };
            };
        };
    };
    listCleanupFailures: {
        parameters: {
            query?: {
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "failures": [
                     *         {
                     *           "attempts": 2,
                     *           "error": "The storage does not answer",
                     *           "fileId": null,
                     *           "firstAt": "2026-01-02T02:00:00Z",
                     *           "lastAt": "2026-01-02T03:00:00Z",
                     *           "scope": "orphan-cleanup",
                     *           "subject": "the blob ab/019b7d00-1111-7222-8333-944455566677"
                     *         }
                     *       ],
                     *       "total": 1
                     *     }
                     */
                    "application/json": components["schemas"]["CleanupFailureList"];
                };
            };
        };
    };
    showConfig: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "groups": [
                     *         {
                     *           "name": "Server",
                     *           "settings": [
                     *             {
                     *               "description": "The port of the API and the page.",
                     *               "name": "PORT",
                     *               "source": "default",
                     *               "value": "8080"
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["SettingsView"];
                };
            };
        };
    };
    listMaintenanceJobs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "jobs": [
                     *         {
                     *           "lastRun": {
                     *             "endedAt": "2026-01-02T03:05:01Z",
                     *             "errors": [],
                     *             "metrics": {
                     *               "permanentlyFailed": 0,
                     *               "reEnqueued": 0,
                     *               "totalStuck": 0
                     *             },
                     *             "outcome": "completed",
                     *             "runId": "019b7e11-4d5e-7f60-8b7c-8d9e0f1a2b3c",
                     *             "startedAt": "2026-01-02T03:05:00Z",
                     *             "startedBy": null,
                     *             "worker": "worker-1:4012"
                     *           },
                     *           "name": "stuck-file-recovery",
                     *           "nextRunAt": "2026-01-02T03:10:00Z",
                     *           "running": false,
                     *           "schedule": "*\/5 * * * *"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["MaintenanceJobList"];
                };
            };
        };
    };
    runMaintenanceJob: {
        parameters: {
            query?: {
                /** @description Ignore the job's safety limit. */
                force?: boolean;
            };
            header?: never;
            path: {
                /** @description The name of a job */
                jobName: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has ended */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "name": "stuck-file-recovery",
                     *       "run": {
                     *         "endedAt": "2026-01-02T03:05:01Z",
                     *         "errors": [],
                     *         "metrics": {
                     *           "permanentlyFailed": 0,
                     *           "reEnqueued": 0,
                     *           "totalStuck": 0
                     *         },
                     *         "outcome": "completed",
                     *         "runId": "019b7e11-4d5e-7f60-8b7c-8d9e0f1a2b3c",
                     *         "startedAt": "2026-01-02T03:05:00Z",
                     *         "startedBy": null,
                     *         "worker": "worker-1:4012"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["MaintenanceJobRun"];
                };
            };
            /** @description It is still running */
            202: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "name": "stuck-file-recovery",
                     *       "run": {
                     *         "endedAt": "2026-01-02T03:05:01Z",
                     *         "errors": [],
                     *         "metrics": {
                     *           "permanentlyFailed": 0,
                     *           "reEnqueued": 0,
                     *           "totalStuck": 0
                     *         },
                     *         "outcome": "completed",
                     *         "runId": "019b7e11-4d5e-7f60-8b7c-8d9e0f1a2b3c",
                     *         "startedAt": "2026-01-02T03:05:00Z",
                     *         "startedBy": null,
                     *         "worker": "worker-1:4012"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["MaintenanceJobRun"];
                };
            };
        };
    };
    listMaintenanceRuns: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The name of a job */
                jobName: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "nextCursor": null,
                     *       "runs": [
                     *         {
                     *           "endedAt": "2026-01-02T03:05:01Z",
                     *           "errors": [],
                     *           "metrics": {
                     *             "permanentlyFailed": 0,
                     *             "reEnqueued": 0,
                     *             "totalStuck": 0
                     *           },
                     *           "outcome": "completed",
                     *           "runId": "019b7e11-4d5e-7f60-8b7c-8d9e0f1a2b3c",
                     *           "startedAt": "2026-01-02T03:05:00Z",
                     *           "startedBy": null,
                     *           "worker": "worker-1:4012"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["RunList"];
                };
            };
        };
    };
    showQueueStatus: {
        parameters: {
            query?: {
                /**
                 * @description The last so many hours, each of them, the present one included. Without it: the last 48 hours, without those in which
                 *     nothing happened.
                 */
                hours?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "circuits": [
                     *         {
                     *           "changedAt": null,
                     *           "failures": 0,
                     *           "lastError": "connection refused",
                     *           "nextProbeAt": null,
                     *           "service": "gateway",
                     *           "state": "closed",
                     *           "until": null
                     *         }
                     *       ],
                     *       "queues": {
                     *         "file-embed": {
                     *           "limitedUntil": null,
                     *           "paused": {
                     *             "at": "2026-01-02T03:00:00Z",
                     *             "by": "olga"
                     *           },
                     *           "retrying": 1,
                     *           "running": 0,
                     *           "waiting": 1
                     *         },
                     *         "file-extract": {
                     *           "limitedUntil": null,
                     *           "paused": null,
                     *           "retrying": 0,
                     *           "running": 1,
                     *           "waiting": 2
                     *         }
                     *       },
                     *       "recentHours": [
                     *         {
                     *           "attemptsByClass": {
                     *             "DOCUMENT_ERROR": 1,
                     *             "LLM_ERROR": 1
                     *           },
                     *           "attemptsTimedOut": 0,
                     *           "byClass": {
                     *             "DOCUMENT_ERROR": 1
                     *           },
                     *           "completed": 41,
                     *           "failed": 1,
                     *           "failedAttempts": 2,
                     *           "hour": "2026-01-02T03:00:00Z",
                     *           "p50Ms": 1850,
                     *           "p95Ms": 5900,
                     *           "retried": 0,
                     *           "retriedReady": 0,
                     *           "timedOut": 0
                     *         }
                     *       ],
                     *       "schedules": [
                     *         {
                     *           "lastRun": {
                     *             "endedAt": "2026-01-02T03:05:01Z",
                     *             "errors": [],
                     *             "metrics": {
                     *               "permanentlyFailed": 0,
                     *               "reEnqueued": 0,
                     *               "totalStuck": 0
                     *             },
                     *             "outcome": "completed",
                     *             "runId": "019b7e11-4d5e-7f60-8b7c-8d9e0f1a2b3c",
                     *             "startedAt": "2026-01-02T03:05:00Z",
                     *             "startedBy": null,
                     *             "worker": "worker-1:4012"
                     *           },
                     *           "name": "stuck-file-recovery",
                     *           "nextRunAt": "2026-01-02T03:10:00Z",
                     *           "running": false,
                     *           "schedule": "*\/5 * * * *"
                     *         }
                     *       ],
                     *       "throughput": {
                     *         "p50Ms": 1900,
                     *         "p95Ms": 6400,
                     *         "retrySuccessRate": 75,
                     *         "totalAttemptsTimedOut": 2,
                     *         "totalCompleted": 840,
                     *         "totalFailed": 10,
                     *         "totalFailedAttempts": 22,
                     *         "totalRetried": 4,
                     *         "totalRetriedReady": 3,
                     *         "totalTimedOut": 1
                     *       },
                     *       "workers": [
                     *         {
                     *           "heartbeatAt": "2026-01-02T03:05:58Z",
                     *           "name": "worker-1:4012",
                     *           "stages": "extract,chunk,embed",
                     *           "startedAt": "2026-01-01T00:00:00Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["QueueStatus"];
                };
            };
        };
    };
    pauseQueue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name of a stage, or of its queue */
                stage: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "paused": true,
                     *       "stage": "embed"
                     *     }
                     */
                    "application/json": components["schemas"]["StagePause"];
                };
            };
        };
    };
    resumeQueue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name of a stage, or of its queue */
                stage: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "paused": true,
                     *       "stage": "embed"
                     *     }
                     */
                    "application/json": components["schemas"]["StagePause"];
                };
            };
        };
    };
    showReindex: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "done": 420,
                     *       "endedAt": null,
                     *       "failed": 0,
                     *       "isRunning": true,
                     *       "message": null,
                     *       "model": "local/all-MiniLM-L6-v2@sha256:0f1c",
                     *       "remaining": 780,
                     *       "startedAt": "2026-01-02T03:04:05Z",
                     *       "startedBy": "olga",
                     *       "total": 1200
                     *     }
                     */
                    "application/json": components["schemas"]["ReindexView"];
                };
            };
        };
    };
    startReindex: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            202: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "done": 420,
                     *       "endedAt": null,
                     *       "failed": 0,
                     *       "isRunning": true,
                     *       "message": null,
                     *       "model": "local/all-MiniLM-L6-v2@sha256:0f1c",
                     *       "remaining": 780,
                     *       "startedAt": "2026-01-02T03:04:05Z",
                     *       "startedBy": "olga",
                     *       "total": 1200
                     *     }
                     */
                    "application/json": components["schemas"]["ReindexView"];
                };
            };
        };
    };
    stopReindex: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "done": 420,
                     *       "endedAt": null,
                     *       "failed": 0,
                     *       "isRunning": true,
                     *       "message": null,
                     *       "model": "local/all-MiniLM-L6-v2@sha256:0f1c",
                     *       "remaining": 780,
                     *       "startedAt": "2026-01-02T03:04:05Z",
                     *       "startedBy": "olga",
                     *       "total": 1200
                     *     }
                     */
                    "application/json": components["schemas"]["ReindexView"];
                };
            };
        };
    };
    listTenants: {
        parameters: {
            query?: {
                /** @description Part of the tenant's name. */
                q?: string;
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "nextCursor": null,
                     *       "tenants": [
                     *         {
                     *           "bytes": {
                     *             "free": 10003415040,
                     *             "limit": 10737418240,
                     *             "reserved": 0,
                     *             "used": 734003200
                     *           },
                     *           "files": {
                     *             "free": 999188,
                     *             "limit": 1000000,
                     *             "reserved": 0,
                     *             "used": 812
                     *           },
                     *           "isDefault": {
                     *             "bytes": true,
                     *             "files": true
                     *           },
                     *           "tenantId": "acme"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["TenantList"];
                };
            };
        };
    };
    setQuota: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant's name */
                tenantId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "bytes": 21474836480,
                 *       "files": 200000
                 *     }
                 */
                "application/json": components["schemas"]["NewQuota"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "bytes": {
                     *         "free": 10002932927,
                     *         "limit": 10737418240,
                     *         "reserved": 482113,
                     *         "used": 734003200
                     *       },
                     *       "files": {
                     *         "free": 98587,
                     *         "limit": 100000,
                     *         "reserved": 1,
                     *         "used": 1412
                     *       },
                     *       "tenantId": "acme"
                     *     }
                     */
                    "application/json": components["schemas"]["QuotaView"];
                };
            };
        };
    };
    listKeys: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description `tenant`: those of all users of the tenant, for its administrators. `all`: those of all tenants, for operators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         {
                     *           "createdAt": "2026-01-02T03:04:05Z",
                     *           "createdBy": "alice",
                     *           "expiresAt": "2027-01-02T00:00:00Z",
                     *           "hint": "lf_7Qm2",
                     *           "keyId": "019b7e12-5e6f-7061-8c8d-9e0f1a2b3c4d",
                     *           "lastUsedAt": "2026-01-02T04:00:00Z",
                     *           "lastUsedFrom": "192.0.2.7",
                     *           "name": "nightly import",
                     *           "revokedAt": null,
                     *           "revokedBy": null,
                     *           "role": "member",
                     *           "scopes": [
                     *             "read",
                     *             "upload"
                     *           ],
                     *           "tenantId": "acme",
                     *           "userId": "alice"
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["ApiKeyList"];
                };
            };
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "expiresAt": "2027-01-02T00:00:00Z",
                 *       "name": "nightly import",
                 *       "scopes": [
                 *         "read",
                 *         "upload"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["NewKey"];
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "createdBy": "alice",
                     *       "expiresAt": "2027-01-02T00:00:00Z",
                     *       "hint": "lf_7Qm2",
                     *       "key": "lf_7Qm2Wc9TzX4vB6nLkJ3hG5fD8sA1pR0e",
                     *       "keyId": "019b7e12-5e6f-7061-8c8d-9e0f1a2b3c4d",
                     *       "lastUsedAt": null,
                     *       "lastUsedFrom": null,
                     *       "name": "nightly import",
                     *       "revokedAt": null,
                     *       "revokedBy": null,
                     *       "role": "member",
                     *       "scopes": [
                     *         "read",
                     *         "upload"
                     *       ],
                     *       "tenantId": "acme",
                     *       "userId": "alice"
                     *     }
                     */
                    "application/json": components["schemas"]["CreatedApiKey"];
                };
            };
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                keyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            204: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listNotifications: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description Only those that were not read yet. */
                unread?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "nextCursor": null,
                     *       "notifications": [
                     *         {
                     *           "createdAt": "2026-01-02T03:05:41Z",
                     *           "data": {
                     *             "code": "NO_TEXT",
                     *             "stage": "extract"
                     *           },
                     *           "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *           "fileName": "scan.pdf",
                     *           "message": "scan.pdf failed: there is no text in the document.",
                     *           "notificationId": "019b7e0d-1c44-7a05-b1f2-9e8d7c6b5a40",
                     *           "readAt": null,
                     *           "resolvedAt": null,
                     *           "type": "file-failure-notification"
                     *         }
                     *       ],
                     *       "unreadCount": 1
                     *     }
                     */
                    "application/json": components["schemas"]["NotificationList"];
                };
            };
        };
    };
    readNotifications: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "markedCount": 1
                     *     }
                     */
                    "application/json": components["schemas"]["MarkedRead"];
                };
            };
        };
    };
    readNotification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                notificationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "createdAt": "2026-01-02T03:05:41Z",
                     *       "data": {
                     *         "code": "NO_TEXT",
                     *         "stage": "extract"
                     *       },
                     *       "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *       "fileName": "scan.pdf",
                     *       "message": "scan.pdf failed: there is no text in the document.",
                     *       "notificationId": "019b7e0d-1c44-7a05-b1f2-9e8d7c6b5a40",
                     *       "readAt": null,
                     *       "resolvedAt": null,
                     *       "type": "file-failure-notification"
                     *     }
                     */
                    "application/json": components["schemas"]["Notification"];
                };
            };
        };
    };
    search: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "attributes": {
                 *         "year": 2026
                 *       },
                 *       "explain": true,
                 *       "limit": 5,
                 *       "mode": "hybrid",
                 *       "query": "when does the port close?",
                 *       "types": [
                 *         "application/pdf"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["SearchRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "explanation": {
                     *         "floor": 0.01,
                     *         "mode": "hybrid",
                     *         "model": "MiniLM-L3/384",
                     *         "related": 0.58,
                     *         "terms": [
                     *           {
                     *             "chunks": 0,
                     *             "term": "port",
                     *             "weight": 3.1
                     *           },
                     *           {
                     *             "chunks": 1,
                     *             "term": "close",
                     *             "weight": 2
                     *           }
                     *         ],
                     *         "unrelated": 0.05
                     *       },
                     *       "hasMore": false,
                     *       "hits": [
                     *         {
                     *           "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *           "charEnd": 64,
                     *           "charStart": 0,
                     *           "explanation": {
                     *             "coverage": 0.48,
                     *             "meaning": 1.1,
                     *             "similarity": 0.61,
                     *             "terms": [
                     *               "close"
                     *             ],
                     *             "words": 0.52
                     *           },
                     *           "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *           "fileName": "tide-tables.pdf",
                     *           "firstOrdinal": 0,
                     *           "heading": "Tides",
                     *           "headings": [
                     *             "Handbook",
                     *             "Tides"
                     *           ],
                     *           "lastOrdinal": 1,
                     *           "matched": [
                     *             "words",
                     *             "meaning"
                     *           ],
                     *           "ordinal": 0,
                     *           "page": 1,
                     *           "places": [
                     *             {
                     *               "box": {
                     *                 "bottom": 0.34,
                     *                 "left": 0.12,
                     *                 "right": 0.88,
                     *                 "top": 0.31
                     *               },
                     *               "page": 1
                     *             }
                     *           ],
                     *           "score": 0.87,
                     *           "snippet": "The harbour closes at low tide."
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["SearchResponse"];
                };
            };
        };
    };
    takeStorageEvents: {
        parameters: {
            query?: {
                /** @description `STORAGE_EVENTS_TOKEN`, for what passes notifications on and cannot send an `Authorization` header. */
                token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description As the store sends it */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "Records": [
                 *         {
                 *           "eventName": "ObjectCreated:Put",
                 *           "s3": {
                 *             "bucket": {
                 *               "name": "bucket"
                 *             },
                 *             "object": {
                 *               "key": "direct/019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                 *               "size": 482113
                 *             }
                 *           }
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "adopted": 1,
                     *       "validationResponse": null
                     *     }
                     */
                    "application/json": components["schemas"]["StorageEventsTaken"];
                };
            };
        };
    };
    listBatches: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "batches": [
                     *         {
                     *           "archiveFileId": null,
                     *           "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *           "completedAt": "2026-01-02T03:05:41Z",
                     *           "createdAt": "2026-01-02T03:04:05Z",
                     *           "expiresAt": "2026-01-03T03:04:05Z",
                     *           "fileCount": 2,
                     *           "priority": "normal",
                     *           "registered": 2,
                     *           "status": "completed",
                     *           "summary": {
                     *             "cancelled": 0,
                     *             "deleted": 0,
                     *             "failed": 1,
                     *             "neverUploaded": 0,
                     *             "ready": 1,
                     *             "total": 2
                     *           }
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["BatchList"];
                };
            };
        };
    };
    openBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "fileCount": 2,
                 *       "metadata": {
                 *         "department": "harbour"
                 *       },
                 *       "priority": "normal"
                 *     }
                 */
                "application/json": components["schemas"]["NewBatch"];
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *       "expiresAt": "2026-01-03T03:04:05Z",
                     *       "fileCount": 2,
                     *       "status": "active"
                     *     }
                     */
                    "application/json": components["schemas"]["OpenedBatch"];
                };
            };
        };
    };
    showBatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                batchId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "archiveFileId": null,
                     *       "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *       "completedAt": null,
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "expiresAt": "2026-01-03T03:04:05Z",
                     *       "fileCount": 2,
                     *       "metadata": {
                     *         "department": "harbour"
                     *       },
                     *       "priority": "normal",
                     *       "progress": {
                     *         "cancelled": 0,
                     *         "chunking": 0,
                     *         "deleted": 0,
                     *         "embedding": 1,
                     *         "extracting": 0,
                     *         "failed": 0,
                     *         "queued": 0,
                     *         "ready": 1,
                     *         "registered": 0,
                     *         "scanning": 0,
                     *         "uploaded": 0
                     *       },
                     *       "registered": 2,
                     *       "status": "active",
                     *       "summary": {
                     *         "cancelled": 0,
                     *         "deleted": 0,
                     *         "failed": 0,
                     *         "neverUploaded": 0,
                     *         "ready": 1,
                     *         "total": 2
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["BatchView"];
                };
            };
        };
    };
    cancelBatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                batchId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "archiveFileId": null,
                     *       "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *       "completedAt": null,
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "expiresAt": "2026-01-03T03:04:05Z",
                     *       "fileCount": 2,
                     *       "metadata": {
                     *         "department": "harbour"
                     *       },
                     *       "priority": "normal",
                     *       "progress": {
                     *         "cancelled": 0,
                     *         "chunking": 0,
                     *         "deleted": 0,
                     *         "embedding": 1,
                     *         "extracting": 0,
                     *         "failed": 0,
                     *         "queued": 0,
                     *         "ready": 1,
                     *         "registered": 0,
                     *         "scanning": 0,
                     *         "uploaded": 0
                     *       },
                     *       "registered": 2,
                     *       "status": "active",
                     *       "summary": {
                     *         "cancelled": 0,
                     *         "deleted": 0,
                     *         "failed": 0,
                     *         "neverUploaded": 0,
                     *         "ready": 1,
                     *         "total": 2
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["BatchView"];
                };
            };
        };
    };
    closeBatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                batchId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "archiveFileId": null,
                     *       "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *       "completedAt": null,
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "expiresAt": "2026-01-03T03:04:05Z",
                     *       "fileCount": 2,
                     *       "metadata": {
                     *         "department": "harbour"
                     *       },
                     *       "priority": "normal",
                     *       "progress": {
                     *         "cancelled": 0,
                     *         "chunking": 0,
                     *         "deleted": 0,
                     *         "embedding": 1,
                     *         "extracting": 0,
                     *         "failed": 0,
                     *         "queued": 0,
                     *         "ready": 1,
                     *         "registered": 0,
                     *         "scanning": 0,
                     *         "uploaded": 0
                     *       },
                     *       "registered": 2,
                     *       "status": "active",
                     *       "summary": {
                     *         "cancelled": 0,
                     *         "deleted": 0,
                     *         "failed": 0,
                     *         "neverUploaded": 0,
                     *         "ready": 1,
                     *         "total": 2
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["BatchView"];
                };
            };
        };
    };
    confirmFileInBatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                batchId: string;
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "md5": "9e107d9d372bb6826bd81d3542a419d6",
                 *       "size": 482113
                 *     }
                 */
                "application/json": components["schemas"]["ConfirmRequest"] | null;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "status": "queued"
                     *     }
                     */
                    "application/json": components["schemas"]["ConfirmedFile"];
                };
            };
        };
    };
    registerFilesInBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Its id */
                batchId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example [
                 *       {
                 *         "attributes": {
                 *           "harbour": "Bremerhaven",
                 *           "year": 2026
                 *         },
                 *         "contentType": "application/pdf",
                 *         "fileName": "tide-tables.pdf",
                 *         "fileSize": 482113,
                 *         "md5": "9e107d9d372bb6826bd81d3542a419d6"
                 *       },
                 *       {
                 *         "contentType": "text/csv",
                 *         "fileName": "crew.csv",
                 *         "fileSize": 1840
                 *       }
                 *     ]
                 */
                "application/json": components["schemas"]["NewFileOrList"];
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example [
                     *       {
                     *         "expiresAt": "2026-01-02T03:19:05Z",
                     *         "expiresInMs": 900000,
                     *         "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *         "headers": {
                     *           "Content-Type": "application/pdf"
                     *         },
                     *         "method": "PUT",
                     *         "uploadUrl": "https://landfall.example.com/api/v2/uploads/blobs/019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11?expires=1767324345000&size=482113&signature=5f1d7c"
                     *       }
                     *     ]
                     */
                    "application/json": components["schemas"]["UploadTicketOrList"];
                };
            };
        };
    };
    sendBytes: {
        parameters: {
            query: {
                size: number;
                /** @description In milliseconds since 1970. */
                expires: number;
                signature: string;
            };
            header?: {
                /** @description The MD5 that the bytes must have */
                "Content-MD5"?: string;
            };
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The MD5 of the bytes */
                    ETag?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "md5": "9e107d9d372bb6826bd81d3542a419d6",
                     *       "size": 482113,
                     *       "status": "uploaded"
                     *     }
                     */
                    "application/json": components["schemas"]["UploadedFile"];
                };
            };
        };
    };
    showBlockers: {
        parameters: {
            query?: {
                /** @description `tenant`: the files of the tenant, for its administrators; `all`: those of all users, for operators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "blockers": [
                     *         {
                     *           "by": null,
                     *           "files": 12,
                     *           "isAllowed": true,
                     *           "kind": "circuit",
                     *           "lastError": "connection refused",
                     *           "message": "The embedding service does not respond. Landfall tries it again by itself",
                     *           "oldestAt": "2026-01-02T03:04:05Z",
                     *           "remedy": "probe_circuit",
                     *           "service": "embeddings",
                     *           "since": "2026-01-02T03:05:00Z",
                     *           "stage": "embed",
                     *           "until": "2026-01-02T03:06:00Z"
                     *         }
                     *       ],
                     *       "stages": [
                     *         {
                     *           "oldestAt": "2026-01-02T03:04:05Z",
                     *           "retrying": 0,
                     *           "running": 0,
                     *           "stage": "embed",
                     *           "waiting": 12,
                     *           "workers": 1
                     *         }
                     *       ],
                     *       "tenants": [
                     *         {
                     *           "oldestAt": "2026-01-02T03:04:05Z",
                     *           "running": 0,
                     *           "tenantId": "acme",
                     *           "waiting": 12
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["BlockerReport"];
                };
            };
        };
    };
    showDashboard: {
        parameters: {
            query?: {
                /** @description `all`: those of all users, for administrators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "activeBatches": 1,
                     *       "circuits": [
                     *         {
                     *           "changedAt": null,
                     *           "failures": 0,
                     *           "lastError": "connection refused",
                     *           "nextProbeAt": null,
                     *           "service": "gateway",
                     *           "state": "closed",
                     *           "until": null
                     *         }
                     *       ],
                     *       "dlqDepth": 17,
                     *       "metrics": {
                     *         "averageProcessingTime": 2150,
                     *         "failureRate24h": 1.2,
                     *         "throughput24h": 840
                     *       },
                     *       "oldestWaitingMs": 1200,
                     *       "queueDepths": {
                     *         "file-chunk": 0,
                     *         "file-embed": 1,
                     *         "file-extract": 2,
                     *         "file-scan": 0
                     *       },
                     *       "recentErrors": [
                     *         {
                     *           "code": "NO_TEXT",
                     *           "error": "There is no text in the document.",
                     *           "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *           "fileName": "scan.pdf",
                     *           "stage": "extract",
                     *           "timestamp": "2026-01-02T03:05:41Z"
                     *         }
                     *       ],
                     *       "statusDistribution": {
                     *         "embedding": 1,
                     *         "failed": 17,
                     *         "queued": 3,
                     *         "ready": 1412
                     *       },
                     *       "stuckFiles": 0
                     *     }
                     */
                    "application/json": components["schemas"]["Dashboard"];
                };
            };
        };
    };
    listDeadLetters: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description How many dead letters to leave out at the beginning, in place of a cursor. */
                offset?: number;
                code?: components["schemas"]["KnownFailureCode"];
                stage?: components["schemas"]["Stage"];
                batchId?: string;
                fingerprint?: string;
                /** @description `all`: those of all users, for administrators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "entries": [
                     *         {
                     *           "attempts": 1,
                     *           "batchId": null,
                     *           "code": "NO_TEXT",
                     *           "deletionAt": "2026-02-01T03:05:41Z",
                     *           "error": "There is no text in the document.",
                     *           "failedAt": "2026-01-02T03:05:41Z",
                     *           "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *           "fileName": "scan.pdf",
                     *           "stage": "extract",
                     *           "tenantId": "acme",
                     *           "userId": "alice"
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["DeadLetterList"];
                };
            };
        };
    };
    groupDeadLetters: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description How many dead letters to leave out at the beginning, in place of a cursor. */
                offset?: number;
                code?: components["schemas"]["KnownFailureCode"];
                stage?: components["schemas"]["Stage"];
                batchId?: string;
                fingerprint?: string;
                /** @description `all`: those of all users, for administrators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "groups": [
                     *         {
                     *           "advice": "Upload a copy without a password",
                     *           "code": "NO_TEXT",
                     *           "count": 17,
                     *           "fingerprint": "4f1c2d3e5a6b7980",
                     *           "firstSeen": "2026-01-01T11:20:00Z",
                     *           "lastSeen": "2026-01-02T03:05:41Z",
                     *           "owners": {
                     *             "count": 1,
                     *             "top": [
                     *               {
                     *                 "count": 17,
                     *                 "tenantId": "acme",
                     *                 "userId": "alice"
                     *               }
                     *             ]
                     *           },
                     *           "retryHelps": false,
                     *           "sample": {
                     *             "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *             "fileName": "scan.pdf",
                     *             "message": "There is no text in the document."
                     *           },
                     *           "stage": "extract",
                     *           "trend": [
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             0,
                     *             17
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["DeadLetterGroupList"];
                };
            };
        };
    };
    retryDeadLetters: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "code": "GW_5XX",
                 *       "stage": "extract"
                 *     }
                 */
                "application/json": components["schemas"]["DeadLetterFilter"] | null;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "action": "retry",
                     *       "createdAt": "2026-01-02T04:00:00Z",
                     *       "createdBy": "alice",
                     *       "doneCount": 16,
                     *       "endedAt": "2026-01-02T04:00:03Z",
                     *       "errorCount": 0,
                     *       "errors": [],
                     *       "filter": {
                     *         "batchId": null,
                     *         "code": "GW_5XX",
                     *         "fingerprint": null,
                     *         "stage": "extract"
                     *       },
                     *       "operationId": "019b7e0e-2a31-7b6c-9d10-3f4e5d6c7b80",
                     *       "reason": null,
                     *       "retriedCount": 16,
                     *       "scope": "own",
                     *       "skipped": [
                     *         {
                     *           "code": "QUOTA_EXCEEDED",
                     *           "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *           "fileName": "scan.pdf",
                     *           "message": "The tenant's quota has no room for it"
                     *         }
                     *       ],
                     *       "skippedCount": 1,
                     *       "status": "completed",
                     *       "totalCount": null,
                     *       "updatedAt": "2026-01-02T04:00:03Z"
                     *     }
                     */
                    "application/json": components["schemas"]["OperationView"];
                };
            };
        };
    };
    discardDeadLetter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            204: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    retryDeadLetter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *       "status": "queued",
                     *       "success": true
                     *     }
                     */
                    "application/json": components["schemas"]["RetriedDeadLetter"];
                };
            };
        };
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description The id of the last event that the client has: the stream continues after it. `Last-Event-ID` does the same. */
                after?: string;
                /** @description Only these types, separated by commas. */
                types?: string;
                /** @description Only events of this batch. */
                batchId?: string;
                /** @description `all`: those of all users, for administrators. */
                scope?: components["schemas"]["Scope"];
                /** @description Instead of a token. */
                ticket?: string;
                /** @description `false`: the stream ends after all events that exist when it is opened. */
                follow?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A WebSocket. Each of its messages is a `StreamMessage` */
            101: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StreamMessage"];
                };
            };
            /** @description Server-sent events. The `data` of each is a `StreamMessage` */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    issueTicket: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-01-02T03:04:35Z",
                     *       "ticket": "tkt_5pK2m9X4vQ"
                     *     }
                     */
                    "application/json": components["schemas"]["EventTicket"];
                };
            };
        };
    };
    listFiles: {
        parameters: {
            query?: {
                /** @description One state, or several separated by commas. */
                status?: string;
                /** @description The code of the error, or several separated by commas. */
                code?: string;
                batchId?: string;
                /** @description Part of the file's name. */
                q?: string;
                /** @description Only files whose bytes have one of these MD5s: up to 100, separated by commas. */
                md5?: string;
                /** @description The user whose files they are, with `scope=tenant` or `scope=all`. */
                owner?: string;
                /** @description The tenant whose files they are, with `scope=all`. */
                tenantId?: string;
                /** @description Registered at this time or later. */
                createdAfter?: string;
                /** @description Registered before this time. */
                createdBefore?: string;
                /** @description `true`: only files with warnings. */
                warnings?: boolean;
                /** @description `tenant`: those of the caller's tenant, for its administrators; `all`: those of all tenants, for operators. */
                scope?: components["schemas"]["Scope"];
                sort?: "createdAt" | "fileName" | "size";
                order?: "asc" | "desc";
                limit?: number;
                /** @description How many files to leave out at the beginning, in place of a cursor. */
                offset?: number;
                /**
                 * @description The `nextCursor` of the page before. A page may have few files, or none, and still have one: then more files are
                 *     to be compared with the filters.
                 */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "files": [
                     *         {
                     *           "archiveBatchId": null,
                     *           "attempt": 1,
                     *           "attempts": {
                     *             "chunk": 1,
                     *             "embed": 1,
                     *             "extract": 1
                     *           },
                     *           "attributes": {
                     *             "harbour": "Bremerhaven",
                     *             "year": 2026
                     *           },
                     *           "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *           "chunkCount": 12,
                     *           "confirmedAt": "2026-01-02T03:04:09Z",
                     *           "contentType": "application/pdf",
                     *           "createdAt": "2026-01-02T03:04:05Z",
                     *           "deletionAt": null,
                     *           "error": {
                     *             "at": "2026-01-02T03:05:02Z",
                     *             "class": "LLM_ERROR",
                     *             "code": "EMBED_ERROR",
                     *             "message": "The embedding service failed. It is tried again by itself.",
                     *             "stage": "embed"
                     *           },
                     *           "failedAt": null,
                     *           "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *           "fileName": "tide-tables.pdf",
                     *           "inflight": null,
                     *           "maxAttempts": 4,
                     *           "md5": "9e107d9d372bb6826bd81d3542a419d6",
                     *           "nextStage": "embed",
                     *           "priority": "normal",
                     *           "queuePosition": null,
                     *           "readyAt": null,
                     *           "resultType": null,
                     *           "retriedAt": null,
                     *           "retriedBy": null,
                     *           "retryAfter": "2026-01-02T03:05:12Z",
                     *           "retryAt": "2026-01-02T03:05:12Z",
                     *           "retryCount": 0,
                     *           "retryInMs": 8000,
                     *           "sha256": "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
                     *           "size": 482113,
                     *           "staleness": {
                     *             "message": null,
                     *             "sinceMs": 2000,
                     *             "stale": false,
                     *             "stuck": null
                     *           },
                     *           "status": "queued",
                     *           "tenantId": "acme",
                     *           "traceUrl": null,
                     *           "updatedAt": "2026-01-02T03:05:02Z",
                     *           "userId": "alice",
                     *           "waitingFor": "retry",
                     *           "waitingMessage": "It is tried again in 8 seconds.",
                     *           "warningCount": 1,
                     *           "warnings": [
                     *             {
                     *               "code": "PAGES_UNREADABLE",
                     *               "message": "Page 7 is damaged, so its text is missing.",
                     *               "page": 7
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "nextCursor": "MDE5YjdlMGM"
                     *     }
                     */
                    "application/json": components["schemas"]["FileList"];
                };
            };
        };
    };
    archiveFiles: {
        parameters: {
            query?: {
                /** @description One state, or several separated by commas. */
                status?: string;
                /** @description The code of the error, or several separated by commas. */
                code?: string;
                batchId?: string;
                /** @description Part of the file's name. */
                q?: string;
                /** @description Only files whose bytes have one of these MD5s: up to 100, separated by commas. */
                md5?: string;
                /** @description The user whose files they are, with `scope=tenant` or `scope=all`. */
                owner?: string;
                /** @description The tenant whose files they are, with `scope=all`. */
                tenantId?: string;
                /** @description Registered at this time or later. */
                createdAfter?: string;
                /** @description Registered before this time. */
                createdBefore?: string;
                /** @description `true`: only files with warnings. */
                warnings?: boolean;
                /** @description `tenant`: those of the caller's tenant, for its administrators; `all`: those of all tenants, for operators. */
                scope?: components["schemas"]["Scope"];
                /** @description The ids of up to 1,000 files, separated by commas, in place of filters. */
                fileIds?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description An attachment with the name of the archive */
                    "Content-Disposition"?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/zip": string;
                };
            };
        };
    };
    countFiles: {
        parameters: {
            query?: {
                /** @description One state, or several separated by commas. */
                status?: string;
                /** @description The code of the error, or several separated by commas. */
                code?: string;
                batchId?: string;
                /** @description Part of the file's name. */
                q?: string;
                /** @description Only files whose bytes have one of these MD5s: up to 100, separated by commas. */
                md5?: string;
                /** @description The user whose files they are, with `scope=tenant` or `scope=all`. */
                owner?: string;
                /** @description The tenant whose files they are, with `scope=all`. */
                tenantId?: string;
                /** @description Registered at this time or later. */
                createdAfter?: string;
                /** @description Registered before this time. */
                createdBefore?: string;
                /** @description `true`: only files with warnings. */
                warnings?: boolean;
                /** @description `tenant`: those of the caller's tenant, for its administrators; `all`: those of all tenants, for operators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "byStatus": {
                     *         "failed": 2,
                     *         "ready": 10
                     *       },
                     *       "isCapped": false,
                     *       "total": 12
                     *     }
                     */
                    "application/json": components["schemas"]["FileCounts"];
                };
            };
        };
    };
    registerFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "attributes": {
                 *         "harbour": "Bremerhaven",
                 *         "year": 2026
                 *       },
                 *       "contentType": "application/pdf",
                 *       "fileName": "tide-tables.pdf",
                 *       "fileSize": 482113,
                 *       "md5": "9e107d9d372bb6826bd81d3542a419d6"
                 *     }
                 */
                "application/json": components["schemas"]["NewFile"];
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-01-02T03:19:05Z",
                     *       "expiresInMs": 900000,
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "headers": {
                     *         "Content-Type": "application/pdf"
                     *       },
                     *       "method": "PUT",
                     *       "uploadUrl": "https://landfall.example.com/api/v2/uploads/blobs/019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11?expires=1767324345000&size=482113&signature=5f1d7c"
                     *     }
                     */
                    "application/json": components["schemas"]["UploadTicket"];
                };
            };
        };
    };
    showFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "archiveBatchId": null,
                     *       "attempt": 1,
                     *       "attempts": {
                     *         "chunk": 1,
                     *         "embed": 1,
                     *         "extract": 1
                     *       },
                     *       "attributes": {
                     *         "harbour": "Bremerhaven",
                     *         "year": 2026
                     *       },
                     *       "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *       "chunkCount": 12,
                     *       "confirmedAt": "2026-01-02T03:04:09Z",
                     *       "contentType": "application/pdf",
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "deletionAt": null,
                     *       "error": {
                     *         "at": "2026-01-02T03:05:02Z",
                     *         "class": "LLM_ERROR",
                     *         "code": "EMBED_ERROR",
                     *         "message": "The embedding service failed. It is tried again by itself.",
                     *         "stage": "embed"
                     *       },
                     *       "failedAt": null,
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "fileName": "tide-tables.pdf",
                     *       "inflight": null,
                     *       "maxAttempts": 4,
                     *       "md5": "9e107d9d372bb6826bd81d3542a419d6",
                     *       "nextStage": "embed",
                     *       "priority": "normal",
                     *       "queuePosition": null,
                     *       "readyAt": null,
                     *       "resultType": null,
                     *       "retriedAt": null,
                     *       "retriedBy": null,
                     *       "retryAfter": "2026-01-02T03:05:12Z",
                     *       "retryAt": "2026-01-02T03:05:12Z",
                     *       "retryCount": 0,
                     *       "retryInMs": 8000,
                     *       "sha256": "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
                     *       "size": 482113,
                     *       "staleness": {
                     *         "message": null,
                     *         "sinceMs": 2000,
                     *         "stale": false,
                     *         "stuck": null
                     *       },
                     *       "status": "queued",
                     *       "tenantId": "acme",
                     *       "traceUrl": null,
                     *       "updatedAt": "2026-01-02T03:05:02Z",
                     *       "userId": "alice",
                     *       "waitingFor": "retry",
                     *       "waitingMessage": "It is tried again in 8 seconds.",
                     *       "warningCount": 1,
                     *       "warnings": [
                     *         {
                     *           "code": "PAGES_UNREADABLE",
                     *           "message": "Page 7 is damaged, so its text is missing.",
                     *           "page": 7
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["FileView"];
                };
            };
        };
    };
    deleteFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            204: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "attributes": {
                 *         "harbour": "Bremerhaven",
                 *         "year": 2026
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["FileChanges"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "archiveBatchId": null,
                     *       "attempt": 1,
                     *       "attempts": {
                     *         "chunk": 1,
                     *         "embed": 1,
                     *         "extract": 1
                     *       },
                     *       "attributes": {
                     *         "harbour": "Bremerhaven",
                     *         "year": 2026
                     *       },
                     *       "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *       "chunkCount": 12,
                     *       "confirmedAt": "2026-01-02T03:04:09Z",
                     *       "contentType": "application/pdf",
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "deletionAt": null,
                     *       "error": {
                     *         "at": "2026-01-02T03:05:02Z",
                     *         "class": "LLM_ERROR",
                     *         "code": "EMBED_ERROR",
                     *         "message": "The embedding service failed. It is tried again by itself.",
                     *         "stage": "embed"
                     *       },
                     *       "failedAt": null,
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "fileName": "tide-tables.pdf",
                     *       "inflight": null,
                     *       "maxAttempts": 4,
                     *       "md5": "9e107d9d372bb6826bd81d3542a419d6",
                     *       "nextStage": "embed",
                     *       "priority": "normal",
                     *       "queuePosition": null,
                     *       "readyAt": null,
                     *       "resultType": null,
                     *       "retriedAt": null,
                     *       "retriedBy": null,
                     *       "retryAfter": "2026-01-02T03:05:12Z",
                     *       "retryAt": "2026-01-02T03:05:12Z",
                     *       "retryCount": 0,
                     *       "retryInMs": 8000,
                     *       "sha256": "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
                     *       "size": 482113,
                     *       "staleness": {
                     *         "message": null,
                     *         "sinceMs": 2000,
                     *         "stale": false,
                     *         "stuck": null
                     *       },
                     *       "status": "queued",
                     *       "tenantId": "acme",
                     *       "traceUrl": null,
                     *       "updatedAt": "2026-01-02T03:05:02Z",
                     *       "userId": "alice",
                     *       "waitingFor": "retry",
                     *       "waitingMessage": "It is tried again in 8 seconds.",
                     *       "warningCount": 1,
                     *       "warnings": [
                     *         {
                     *           "code": "PAGES_UNREADABLE",
                     *           "message": "Page 7 is damaged, so its text is missing.",
                     *           "page": 7
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["FileView"];
                };
            };
        };
    };
    cancelFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "archiveBatchId": null,
                     *       "attempt": 1,
                     *       "attempts": {
                     *         "chunk": 1,
                     *         "embed": 1,
                     *         "extract": 1
                     *       },
                     *       "attributes": {
                     *         "harbour": "Bremerhaven",
                     *         "year": 2026
                     *       },
                     *       "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *       "chunkCount": 12,
                     *       "confirmedAt": "2026-01-02T03:04:09Z",
                     *       "contentType": "application/pdf",
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "deletionAt": null,
                     *       "error": {
                     *         "at": "2026-01-02T03:05:02Z",
                     *         "class": "LLM_ERROR",
                     *         "code": "EMBED_ERROR",
                     *         "message": "The embedding service failed. It is tried again by itself.",
                     *         "stage": "embed"
                     *       },
                     *       "failedAt": null,
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "fileName": "tide-tables.pdf",
                     *       "inflight": null,
                     *       "maxAttempts": 4,
                     *       "md5": "9e107d9d372bb6826bd81d3542a419d6",
                     *       "nextStage": "embed",
                     *       "priority": "normal",
                     *       "queuePosition": null,
                     *       "readyAt": null,
                     *       "resultType": null,
                     *       "retriedAt": null,
                     *       "retriedBy": null,
                     *       "retryAfter": "2026-01-02T03:05:12Z",
                     *       "retryAt": "2026-01-02T03:05:12Z",
                     *       "retryCount": 0,
                     *       "retryInMs": 8000,
                     *       "sha256": "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
                     *       "size": 482113,
                     *       "staleness": {
                     *         "message": null,
                     *         "sinceMs": 2000,
                     *         "stale": false,
                     *         "stuck": null
                     *       },
                     *       "status": "queued",
                     *       "tenantId": "acme",
                     *       "traceUrl": null,
                     *       "updatedAt": "2026-01-02T03:05:02Z",
                     *       "userId": "alice",
                     *       "waitingFor": "retry",
                     *       "waitingMessage": "It is tried again in 8 seconds.",
                     *       "warningCount": 1,
                     *       "warnings": [
                     *         {
                     *           "code": "PAGES_UNREADABLE",
                     *           "message": "Page 7 is damaged, so its text is missing.",
                     *           "page": 7
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["FileView"];
                };
            };
        };
    };
    listChunks: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "chunks": [
                     *         {
                     *           "charEnd": 31,
                     *           "charStart": 0,
                     *           "heading": "Tides",
                     *           "headings": [
                     *             "Handbook",
                     *             "Tides"
                     *           ],
                     *           "ordinal": 0,
                     *           "page": 1,
                     *           "places": [
                     *             {
                     *               "box": {
                     *                 "bottom": 0.34,
                     *                 "left": 0.12,
                     *                 "right": 0.88,
                     *                 "top": 0.31
                     *               },
                     *               "page": 1
                     *             }
                     *           ],
                     *           "text": "The harbour closes at low tide.",
                     *           "tokens": 7
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["ChunkList"];
                };
            };
        };
    };
    confirmFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "md5": "9e107d9d372bb6826bd81d3542a419d6",
                 *       "size": 482113
                 *     }
                 */
                "application/json": components["schemas"]["ConfirmRequest"] | null;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "status": "queued"
                     *     }
                     */
                    "application/json": components["schemas"]["ConfirmedFile"];
                };
            };
        };
    };
    downloadFile: {
        parameters: {
            query?: {
                /** @description Have the bytes sent by this server also where they are in an object store. */
                proxy?: boolean;
            };
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description An attachment with the file's name */
                    "Content-Disposition"?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
            /** @description Success */
            302: {
                headers: {
                    /** @description The address of the bytes in the object store */
                    Location?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    showHistory: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "history": [
                     *         {
                     *           "actor": {
                     *             "kind": "user",
                     *             "name": "alice"
                     *           },
                     *           "at": "2026-01-02T03:04:05Z",
                     *           "attempt": null,
                     *           "errorCode": null,
                     *           "errorMessage": null,
                     *           "from": null,
                     *           "id": 4708,
                     *           "reason": "It was registered",
                     *           "stage": null,
                     *           "to": "registered",
                     *           "worker": null
                     *         },
                     *         {
                     *           "actor": {
                     *             "kind": "worker",
                     *             "name": "worker-1:4012"
                     *           },
                     *           "at": "2026-01-02T03:05:02Z",
                     *           "attempt": 1,
                     *           "errorCode": "EMBED_ERROR",
                     *           "errorMessage": "The embedding service failed. It is tried again by itself.",
                     *           "from": "embedding",
                     *           "id": 4711,
                     *           "reason": "The stage failed and is tried again",
                     *           "stage": "embed",
                     *           "to": "queued",
                     *           "worker": "worker-1:4012"
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["FileHistory"];
                };
            };
        };
    };
    showResult: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description An attachment with the file's name and the extension of what it is */
                    "Content-Disposition"?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    retryFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "fromStage": "extract"
                 *     }
                 */
                "application/json": components["schemas"]["RetryRequest"] | null;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "archiveBatchId": null,
                     *       "attempt": 1,
                     *       "attempts": {
                     *         "chunk": 1,
                     *         "embed": 1,
                     *         "extract": 1
                     *       },
                     *       "attributes": {
                     *         "harbour": "Bremerhaven",
                     *         "year": 2026
                     *       },
                     *       "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *       "chunkCount": 12,
                     *       "confirmedAt": "2026-01-02T03:04:09Z",
                     *       "contentType": "application/pdf",
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "deletionAt": null,
                     *       "error": {
                     *         "at": "2026-01-02T03:05:02Z",
                     *         "class": "LLM_ERROR",
                     *         "code": "EMBED_ERROR",
                     *         "message": "The embedding service failed. It is tried again by itself.",
                     *         "stage": "embed"
                     *       },
                     *       "failedAt": null,
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "fileName": "tide-tables.pdf",
                     *       "inflight": null,
                     *       "maxAttempts": 4,
                     *       "md5": "9e107d9d372bb6826bd81d3542a419d6",
                     *       "nextStage": "embed",
                     *       "priority": "normal",
                     *       "queuePosition": null,
                     *       "readyAt": null,
                     *       "resultType": null,
                     *       "retriedAt": null,
                     *       "retriedBy": null,
                     *       "retryAfter": "2026-01-02T03:05:12Z",
                     *       "retryAt": "2026-01-02T03:05:12Z",
                     *       "retryCount": 0,
                     *       "retryInMs": 8000,
                     *       "sha256": "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
                     *       "size": 482113,
                     *       "staleness": {
                     *         "message": null,
                     *         "sinceMs": 2000,
                     *         "stale": false,
                     *         "stuck": null
                     *       },
                     *       "status": "queued",
                     *       "tenantId": "acme",
                     *       "traceUrl": null,
                     *       "updatedAt": "2026-01-02T03:05:02Z",
                     *       "userId": "alice",
                     *       "waitingFor": "retry",
                     *       "waitingMessage": "It is tried again in 8 seconds.",
                     *       "warningCount": 1,
                     *       "warnings": [
                     *         {
                     *           "code": "PAGES_UNREADABLE",
                     *           "message": "Page 7 is damaged, so its text is missing.",
                     *           "page": 7
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["FileView"];
                };
            };
        };
    };
    signS3Request: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "method": "PUT",
                 *       "partNumber": 1,
                 *       "uploadId": "VXBsb2FkIElE"
                 *     }
                 */
                "application/json": components["schemas"]["S3Request"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "headers": {
                     *         "Content-Type": "application/pdf"
                     *       },
                     *       "url": "https://bucket.s3.example.com/direct/019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11?partNumber=1&uploadId=VXBsb2FkIElE&X-Amz-Signature=aeeed9"
                     *     }
                     */
                    "application/json": components["schemas"]["SignedS3Request"];
                };
            };
        };
    };
    showText: {
        parameters: {
            query?: {
                /**
                 * @description `markdown` (the default), or `plain`: without the marks of headings, tables and links. A file that is plain text stays
                 *     as it is.
                 */
                format?: "markdown" | "plain";
            };
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "text/markdown": string;
                    "text/plain": string;
                };
            };
        };
    };
    freshUploadUrl: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-01-02T03:19:05Z",
                     *       "expiresInMs": 900000,
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "headers": {
                     *         "Content-Type": "application/pdf"
                     *       },
                     *       "method": "PUT",
                     *       "uploadUrl": "https://landfall.example.com/api/v2/uploads/blobs/019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11?expires=1767324345000&size=482113&signature=5f1d7c"
                     *     }
                     */
                    "application/json": components["schemas"]["UploadTicket"];
                };
            };
        };
    };
    listOperations: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description `all`: those of all users, for administrators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "nextCursor": null,
                     *       "operations": [
                     *         {
                     *           "action": "retry",
                     *           "createdAt": "2026-01-02T04:00:00Z",
                     *           "createdBy": "alice",
                     *           "doneCount": 16,
                     *           "endedAt": "2026-01-02T04:00:03Z",
                     *           "errorCount": 0,
                     *           "errors": [],
                     *           "filter": {
                     *             "batchId": null,
                     *             "code": "GW_5XX",
                     *             "fingerprint": null,
                     *             "stage": "extract"
                     *           },
                     *           "operationId": "019b7e0e-2a31-7b6c-9d10-3f4e5d6c7b80",
                     *           "reason": null,
                     *           "retriedCount": 16,
                     *           "scope": "own",
                     *           "skipped": [
                     *             {
                     *               "code": "QUOTA_EXCEEDED",
                     *               "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *               "fileName": "scan.pdf",
                     *               "message": "The tenant's quota has no room for it"
                     *             }
                     *           ],
                     *           "skippedCount": 1,
                     *           "status": "completed",
                     *           "totalCount": null,
                     *           "updatedAt": "2026-01-02T04:00:03Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["OperationList"];
                };
            };
        };
    };
    startOperation: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "action": "retry",
                 *       "filter": {
                 *         "code": "EMBED_ERROR",
                 *         "status": "failed"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["NewOperation"];
            };
        };
        responses: {
            /** @description Success */
            202: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "action": "retry",
                     *       "createdAt": "2026-01-02T04:00:00Z",
                     *       "createdBy": "alice",
                     *       "doneCount": 16,
                     *       "endedAt": "2026-01-02T04:00:03Z",
                     *       "errorCount": 0,
                     *       "errors": [],
                     *       "filter": {
                     *         "batchId": null,
                     *         "code": "GW_5XX",
                     *         "fingerprint": null,
                     *         "stage": "extract"
                     *       },
                     *       "operationId": "019b7e0e-2a31-7b6c-9d10-3f4e5d6c7b80",
                     *       "reason": null,
                     *       "retriedCount": 16,
                     *       "scope": "own",
                     *       "skipped": [
                     *         {
                     *           "code": "QUOTA_EXCEEDED",
                     *           "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *           "fileName": "scan.pdf",
                     *           "message": "The tenant's quota has no room for it"
                     *         }
                     *       ],
                     *       "skippedCount": 1,
                     *       "status": "completed",
                     *       "totalCount": null,
                     *       "updatedAt": "2026-01-02T04:00:03Z"
                     *     }
                     */
                    "application/json": components["schemas"]["OperationView"];
                };
            };
        };
    };
    showOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                operationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "action": "retry",
                     *       "createdAt": "2026-01-02T04:00:00Z",
                     *       "createdBy": "alice",
                     *       "doneCount": 16,
                     *       "endedAt": "2026-01-02T04:00:03Z",
                     *       "errorCount": 0,
                     *       "errors": [],
                     *       "filter": {
                     *         "batchId": null,
                     *         "code": "GW_5XX",
                     *         "fingerprint": null,
                     *         "stage": "extract"
                     *       },
                     *       "operationId": "019b7e0e-2a31-7b6c-9d10-3f4e5d6c7b80",
                     *       "reason": null,
                     *       "retriedCount": 16,
                     *       "scope": "own",
                     *       "skipped": [
                     *         {
                     *           "code": "QUOTA_EXCEEDED",
                     *           "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *           "fileName": "scan.pdf",
                     *           "message": "The tenant's quota has no room for it"
                     *         }
                     *       ],
                     *       "skippedCount": 1,
                     *       "status": "completed",
                     *       "totalCount": null,
                     *       "updatedAt": "2026-01-02T04:00:03Z"
                     *     }
                     */
                    "application/json": components["schemas"]["OperationView"];
                };
            };
        };
    };
    stopOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                operationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "action": "retry",
                     *       "createdAt": "2026-01-02T04:00:00Z",
                     *       "createdBy": "alice",
                     *       "doneCount": 16,
                     *       "endedAt": "2026-01-02T04:00:03Z",
                     *       "errorCount": 0,
                     *       "errors": [],
                     *       "filter": {
                     *         "batchId": null,
                     *         "code": "GW_5XX",
                     *         "fingerprint": null,
                     *         "stage": "extract"
                     *       },
                     *       "operationId": "019b7e0e-2a31-7b6c-9d10-3f4e5d6c7b80",
                     *       "reason": null,
                     *       "retriedCount": 16,
                     *       "scope": "own",
                     *       "skipped": [
                     *         {
                     *           "code": "QUOTA_EXCEEDED",
                     *           "fileId": "019b7e0c-7b2d-7d08-a3c4-1b2c3d4e5f60",
                     *           "fileName": "scan.pdf",
                     *           "message": "The tenant's quota has no room for it"
                     *         }
                     *       ],
                     *       "skippedCount": 1,
                     *       "status": "completed",
                     *       "totalCount": null,
                     *       "updatedAt": "2026-01-02T04:00:03Z"
                     *     }
                     */
                    "application/json": components["schemas"]["OperationView"];
                };
            };
        };
    };
    showOrphans: {
        parameters: {
            query?: {
                /** @description Scan the storage now, for administrators. */
                refresh?: boolean;
                /** @description `all`: those of all users, for administrators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "abandonedUploads": {
                     *         "count": 2,
                     *         "oldestAge": 5400000
                     *       },
                     *       "lastScanTime": "2026-01-02T02:00:00Z",
                     *       "orphanBlobs": {
                     *         "count": 1,
                     *         "samples": [
                     *           "ab/019b7d00-1111-7222-8333-944455566677"
                     *         ],
                     *         "totalSize": 4096
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["OrphanReport"];
                };
            };
        };
    };
    showQuota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "bytes": {
                     *         "free": 10002932927,
                     *         "limit": 10737418240,
                     *         "reserved": 482113,
                     *         "used": 734003200
                     *       },
                     *       "files": {
                     *         "free": 98587,
                     *         "limit": 100000,
                     *         "reserved": 1,
                     *         "used": 1412
                     *       },
                     *       "tenantId": "acme"
                     *     }
                     */
                    "application/json": components["schemas"]["QuotaView"];
                };
            };
        };
    };
    listStuckFiles: {
        parameters: {
            query?: {
                limit?: number;
                /** @description `all`: those of all users, for administrators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "files": [
                     *         {
                     *           "batchId": "019b7e0c-5a10-7c2e-8f31-2d4b6a8c0e11",
                     *           "fileName": "tide-tables.pdf",
                     *           "id": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *           "message": "Its worker no longer holds it. It goes back to the queue by itself.",
                     *           "reason": "claim_broken",
                     *           "retryCount": 0,
                     *           "status": "embedding",
                     *           "stuckDuration": 2400000,
                     *           "updatedAt": "2026-01-02T03:05:02Z"
                     *         }
                     *       ],
                     *       "total": 1,
                     *       "withoutWorkers": {
                     *         "scan": 3
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["StuckFileList"];
                };
            };
        };
    };
    retryStuckFiles: {
        parameters: {
            query?: {
                /** @description `all`: those of all users, for administrators. */
                scope?: components["schemas"]["Scope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "errors": [],
                     *       "retriedCount": 4,
                     *       "skippedCount": 0,
                     *       "success": true
                     *     }
                     */
                    "application/json": components["schemas"]["RetriedStuckFiles"];
                };
            };
        };
    };
    retryStuckFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "fileId": "019b7e0c-6f0a-7c31-9d2e-0f3a5b7c9d11",
                     *       "newStatus": "queued",
                     *       "previousStatus": "embedding",
                     *       "retryCount": 1,
                     *       "success": true
                     *     }
                     */
                    "application/json": components["schemas"]["RetriedStuckFile"];
                };
            };
        };
    };
    createUpload: {
        parameters: {
            query?: never;
            header: {
                /** @description 1.0.0 */
                "Tus-Resumable": string;
                /** @description The size of the file in bytes. Not with Upload-Concat: final */
                "Upload-Length"?: number;
                /** @description What the file is called, and so on */
                "Upload-Metadata"?: string;
                /** @description partial, or final; and the addresses of the parts */
                "Upload-Concat"?: string;
                /** @description The checksum of the bytes in this request */
                "Upload-Checksum"?: string;
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/offset+octet-stream": string;
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    /** @description The address of the upload */
                    Location?: string;
                    /** @description When the upload is given up if no bytes come */
                    "Upload-Expires"?: string;
                    /** @description How many bytes have arrived */
                    "Upload-Offset"?: number;
                    /** @description The id of the file */
                    "X-File-Id"?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    describeUploads: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            204: {
                headers: {
                    "Tus-Checksum-Algorithm"?: string;
                    "Tus-Extension"?: string;
                    "Tus-Max-Size"?: number;
                    "Tus-Version"?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    overrideMethod: {
        parameters: {
            query?: never;
            header: {
                /** @description 1.0.0 */
                "Tus-Resumable": string;
                /** @description PATCH, HEAD or DELETE */
                "X-HTTP-Method-Override": string;
                /** @description For PATCH */
                "Upload-Offset"?: number;
                /** @description For PATCH */
                "Upload-Checksum"?: string;
            };
            path: {
                /** @description Its id */
                uploadId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/offset+octet-stream": string;
            };
        };
        responses: {
            /** @description The response to a HEAD */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The response to a PATCH or DELETE */
            204: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    terminateUpload: {
        parameters: {
            query?: never;
            header: {
                /** @description 1.0.0 */
                "Tus-Resumable": string;
            };
            path: {
                /** @description Its id */
                uploadId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            204: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    describeUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                uploadId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            204: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    uploadOffset: {
        parameters: {
            query?: never;
            header: {
                /** @description 1.0.0 */
                "Tus-Resumable": string;
            };
            path: {
                /** @description Its id */
                uploadId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description When the upload is given up if no bytes come */
                    "Upload-Expires"?: string;
                    /** @description How many there are in all */
                    "Upload-Length"?: number;
                    /** @description As it was sent */
                    "Upload-Metadata"?: string;
                    /** @description How many bytes have arrived and are safe */
                    "Upload-Offset"?: number;
                    /** @description The id of the file */
                    "X-File-Id"?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    appendToUpload: {
        parameters: {
            query?: never;
            header: {
                /** @description 1.0.0 */
                "Tus-Resumable": string;
                /** @description Where the bytes begin: how many have arrived before */
                "Upload-Offset": number;
                /** @description An algorithm and the checksum in base64. Bytes with another one are not kept */
                "Upload-Checksum"?: string;
            };
            path: {
                /** @description Its id */
                uploadId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/offset+octet-stream": string;
            };
        };
        responses: {
            /** @description Success */
            204: {
                headers: {
                    /** @description When the upload is given up if no more bytes come */
                    "Upload-Expires"?: string;
                    /** @description How many bytes have arrived and are safe */
                    "Upload-Offset"?: number;
                    /** @description The id of the file */
                    "X-File-Id"?: string;
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "nextCursor": null,
                     *       "webhooks": [
                     *         {
                     *           "createdAt": "2026-01-02T03:04:05Z",
                     *           "createdBy": "alice",
                     *           "description": "Updates the archive",
                     *           "disabledAt": null,
                     *           "disabledReason": null,
                     *           "enabled": true,
                     *           "eventTypes": [
                     *             "file:status-changed",
                     *             "batch:completed"
                     *           ],
                     *           "failingSince": null,
                     *           "id": "019b7e0f-0b1c-7d2e-8f30-415263748596",
                     *           "oldSecretValidUntil": null,
                     *           "scope": "own",
                     *           "updatedAt": "2026-01-02T03:04:05Z",
                     *           "url": "https://example.com/landfall"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookList"];
                };
            };
        };
    };
    registerWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "description": "Updates the archive",
                 *       "eventTypes": [
                 *         "file:status-changed",
                 *         "batch:completed"
                 *       ],
                 *       "scope": "own",
                 *       "url": "https://example.com/landfall"
                 *     }
                 */
                "application/json": components["schemas"]["NewWebhook"];
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "description": "Updates the archive",
                     *       "enabled": true,
                     *       "eventTypes": [
                     *         "file:status-changed",
                     *         "batch:completed"
                     *       ],
                     *       "id": "019b7e0f-0b1c-7d2e-8f30-415263748596",
                     *       "scope": "own",
                     *       "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                     *       "url": "https://example.com/landfall"
                     *     }
                     */
                    "application/json": components["schemas"]["RegisteredWebhook"];
                };
            };
        };
    };
    showWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "createdBy": "alice",
                     *       "description": "Updates the archive",
                     *       "disabledAt": null,
                     *       "disabledReason": null,
                     *       "enabled": true,
                     *       "eventTypes": [
                     *         "file:status-changed",
                     *         "batch:completed"
                     *       ],
                     *       "failingSince": null,
                     *       "id": "019b7e0f-0b1c-7d2e-8f30-415263748596",
                     *       "oldSecretValidUntil": null,
                     *       "scope": "own",
                     *       "updatedAt": "2026-01-02T03:04:05Z",
                     *       "url": "https://example.com/landfall"
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookView"];
                };
            };
        };
    };
    removeWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            204: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "enabled": true,
                 *       "eventTypes": null
                 *     }
                 */
                "application/json": components["schemas"]["WebhookChanges"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "createdAt": "2026-01-02T03:04:05Z",
                     *       "createdBy": "alice",
                     *       "description": "Updates the archive",
                     *       "disabledAt": null,
                     *       "disabledReason": null,
                     *       "enabled": true,
                     *       "eventTypes": [
                     *         "file:status-changed",
                     *         "batch:completed"
                     *       ],
                     *       "failingSince": null,
                     *       "id": "019b7e0f-0b1c-7d2e-8f30-415263748596",
                     *       "oldSecretValidUntil": null,
                     *       "scope": "own",
                     *       "updatedAt": "2026-01-02T03:04:05Z",
                     *       "url": "https://example.com/landfall"
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookView"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                status?: components["schemas"]["DeliveryStatus"];
            };
            header?: never;
            path: {
                /** @description Its id */
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "deliveries": [
                     *         {
                     *           "attempts": 1,
                     *           "createdAt": "2026-01-02T03:05:02Z",
                     *           "durationMs": 48,
                     *           "endedAt": "2026-01-02T03:05:03Z",
                     *           "error": null,
                     *           "eventId": 4711,
                     *           "eventType": "file:status-changed",
                     *           "id": "019b7e10-3c4d-7e5f-8a6b-7c8d9e0f1a2b",
                     *           "lastAttemptAt": "2026-01-02T03:05:03Z",
                     *           "messageId": "019b7e10-3c4d-7e5f-8a6b-7c8d9e0f1a2b",
                     *           "nextAttemptAt": null,
                     *           "responseExcerpt": "",
                     *           "responseStatus": 204,
                     *           "status": "delivered"
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["DeliveryList"];
                };
            };
        };
    };
    redeliver: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Its id */
                webhookId: string;
                /** @description Its id */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            202: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "attempts": 1,
                     *       "createdAt": "2026-01-02T03:05:02Z",
                     *       "durationMs": 48,
                     *       "endedAt": "2026-01-02T03:05:03Z",
                     *       "error": null,
                     *       "eventId": 4711,
                     *       "eventType": "file:status-changed",
                     *       "id": "019b7e10-3c4d-7e5f-8a6b-7c8d9e0f1a2b",
                     *       "lastAttemptAt": "2026-01-02T03:05:03Z",
                     *       "messageId": "019b7e10-3c4d-7e5f-8a6b-7c8d9e0f1a2b",
                     *       "nextAttemptAt": null,
                     *       "responseExcerpt": "",
                     *       "responseStatus": 204,
                     *       "status": "delivered"
                     *     }
                     */
                    "application/json": components["schemas"]["DeliveryView"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Its id */
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "019b7e0f-0b1c-7d2e-8f30-415263748596",
                     *       "oldSecretValidUntil": "2026-01-03T03:04:05Z",
                     *       "secret": "whsec_C2FVsBQIhrscChlQIMV6ynTNl2bqYGx0"
                     *     }
                     */
                    "application/json": components["schemas"]["RotatedSecret"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key with the same request runs once and gets the same response */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Its id */
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            202: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "attempts": 1,
                     *       "createdAt": "2026-01-02T03:05:02Z",
                     *       "durationMs": 48,
                     *       "endedAt": "2026-01-02T03:05:03Z",
                     *       "error": null,
                     *       "eventId": 4711,
                     *       "eventType": "file:status-changed",
                     *       "id": "019b7e10-3c4d-7e5f-8a6b-7c8d9e0f1a2b",
                     *       "lastAttemptAt": "2026-01-02T03:05:03Z",
                     *       "messageId": "019b7e10-3c4d-7e5f-8a6b-7c8d9e0f1a2b",
                     *       "nextAttemptAt": null,
                     *       "responseExcerpt": "",
                     *       "responseStatus": 204,
                     *       "status": "delivered"
                     *     }
                     */
                    "application/json": components["schemas"]["DeliveryView"];
                };
            };
        };
    };
    showConsoleAsset: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name of a file of the console */
                consoleFile: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    finishLogin: {
        parameters: {
            query?: {
                code?: string;
                state?: string;
                error?: string;
                /** @description The name of the provider. */
                iss?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Back to the page: signed in, or with what went wrong */
            303: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    issueLink: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "member",
                 *       "tenantId": "acme",
                 *       "userId": "alice"
                 *     }
                 */
                "application/json": components["schemas"]["NewSignInLink"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-01-02T03:14:05Z",
                     *       "url": "https://landfall.example.com/#link=H5tQ8wE2rY6u"
                     *     }
                     */
                    "application/json": components["schemas"]["SignInLink"];
                };
            };
        };
    };
    openLink: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "code": "H5tQ8wE2rY6u",
                 *       "confirm": true
                 *     }
                 */
                "application/json": components["schemas"]["OpenLinkRequest"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "role": "member",
                     *       "session": {
                     *         "csrfToken": "8pJ1vK3mQ5tX7zB9",
                     *         "expiresAt": "2026-01-02T15:04:05Z",
                     *         "idleUntil": "2026-01-02T04:04:05Z",
                     *         "role": "member",
                     *         "tenantId": "acme",
                     *         "userId": "alice"
                     *       },
                     *       "tenantId": "acme",
                     *       "userId": "alice"
                     *     }
                     */
                    "application/json": components["schemas"]["OpenedLink"];
                };
            };
        };
    };
    logIn: {
        parameters: {
            query?: {
                /** @description A path of this server. */
                returnTo?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the identity provider, or back to the page with what went wrong */
            303: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    logOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "everywhere": false
                 *     }
                 */
                "application/json": components["schemas"]["LogoutRequest"] | null;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ended": 1,
                     *       "providerUrl": null
                     *     }
                     */
                    "application/json": components["schemas"]["LoggedOut"];
                };
            };
        };
    };
    showSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "session": {
                     *         "csrfToken": "8pJ1vK3mQ5tX7zB9",
                     *         "expiresAt": "2026-01-02T15:04:05Z",
                     *         "idleUntil": "2026-01-02T04:04:05Z",
                     *         "role": "member",
                     *         "tenantId": "acme",
                     *         "userId": "alice"
                     *       },
                     *       "ways": {
                     *         "link": true,
                     *         "provider": false,
                     *         "token": true
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SessionView"];
                };
            };
        };
    };
    beginSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "session": {
                     *         "csrfToken": "8pJ1vK3mQ5tX7zB9",
                     *         "expiresAt": "2026-01-02T15:04:05Z",
                     *         "idleUntil": "2026-01-02T04:04:05Z",
                     *         "role": "member",
                     *         "tenantId": "acme",
                     *         "userId": "alice"
                     *       },
                     *       "ways": {
                     *         "link": true,
                     *         "provider": false,
                     *         "token": true
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SessionView"];
                };
            };
        };
    };
    isAlive: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok"
                     *     }
                     */
                    "application/json": components["schemas"]["Liveness"];
                };
            };
        };
    };
    showMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    isReady: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    /** @description The id of this request in the log: the client's own, or a new one */
                    "X-Request-Id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "checks": {
                     *         "database": {
                     *           "status": "ok"
                     *         },
                     *         "storage": {
                     *           "status": "ok"
                     *         }
                     *       },
                     *       "status": "ready"
                     *     }
                     */
                    "application/json": components["schemas"]["Readiness"];
                };
            };
        };
    };
    onAlertRaised: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AlertRaisedWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onBatchCancelled: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BatchCancelledWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onBatchCompleted: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BatchCompletedWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onBatchExpired: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BatchExpiredWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onBatchProgress: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BatchProgressWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onCircuitChanged: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CircuitChangedWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onFileCleanedUp: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FileCleanedUpWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onFileProcessingStalled: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FileProcessingStalledWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onFileStatusChanged: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FileStatusChangedWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onJobCompleted: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobCompletedWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onNotificationCreated: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NotificationCreatedWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onQueueRateLimitExceeded: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QueueRateLimitExceededWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    onWebhookTest: {
        parameters: {
            query?: never;
            header: {
                /** @description The id of the message */
                "webhook-id": string;
                /** @description When it was sent, in seconds since 1970 */
                "webhook-timestamp": string;
                /** @description `v1,` and the signature in base64; several are separated by spaces */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookTestWebhook"];
            };
        };
        responses: {
            /** @description Gone. The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Accepted. Every other status is a failure, and the message is sent again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}

/** The codes of refusals: `code` of a LandfallError. */
export type RefusalCode =
  | 'ANOTHER_SESSION'
  | 'AUTH_UNAVAILABLE'
  | 'BATCH_FULL'
  | 'BATCH_NOT_ACTIVE'
  | 'BATCH_NOT_FOUND'
  | 'BLOB_CHANGED'
  | 'BODY_BROKEN'
  | 'BODY_TOO_LARGE'
  | 'CHECKSUM_MISMATCH'
  | 'CIRCUIT_NOT_FOUND'
  | 'CROSS_SITE_REQUEST'
  | 'DATABASE_FILE_GONE'
  | 'DATABASE_UNAVAILABLE'
  | 'DELIVERY_NOT_FOUND'
  | 'EVENT_STREAMS_EXHAUSTED'
  | 'FILE_DAMAGED'
  | 'FILE_DELETED'
  | 'FILE_NOT_FOUND'
  | 'FORBIDDEN'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'INSUFFICIENT_SCOPE'
  | 'INTERNAL'
  | 'INVALID_ATTRIBUTES'
  | 'INVALID_CONTENT_TYPE'
  | 'INVALID_CURSOR'
  | 'INVALID_EVENT_TYPE'
  | 'INVALID_FILE_COUNT'
  | 'INVALID_FILE_NAME'
  | 'INVALID_FILE_SIZE'
  | 'INVALID_IDEMPOTENCY_KEY'
  | 'INVALID_JSON'
  | 'INVALID_LINK'
  | 'INVALID_MAPPING'
  | 'INVALID_MD5'
  | 'INVALID_METADATA'
  | 'INVALID_QUERY'
  | 'INVALID_REQUEST'
  | 'INVALID_SHA256'
  | 'INVALID_SIGNATURE'
  | 'INVALID_STATE'
  | 'INVALID_TICKET'
  | 'INVALID_TOKEN'
  | 'INVALID_UPGRADE'
  | 'INVALID_UPLOAD_HEADER'
  | 'INVALID_WEBHOOK_URL'
  | 'JOB_NOT_FOUND'
  | 'JOB_RUNNING'
  | 'JOINED_UPLOAD'
  | 'KEY_NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'NOTHING_TO_FORCE'
  | 'NOTIFICATION_NOT_FOUND'
  | 'NOT_ACCEPTABLE'
  | 'NOT_EXTRACTED'
  | 'NOT_FOUND'
  | 'NO_DIRECT_UPLOADS'
  | 'NO_SCANNER'
  | 'OFFSET_MISMATCH'
  | 'OPERATION_NOT_FOUND'
  | 'PIECE_CHECKSUM_MISMATCH'
  | 'PRIVATE_WEBHOOK_ADDRESS'
  | 'QUEUE_NOT_FOUND'
  | 'QUOTA_EXCEEDED'
  | 'REQUEST_TIMEOUT'
  | 'SERVER_BUSY'
  | 'SESSION_EXPIRED'
  | 'SIGN_IN_EXPIRED'
  | 'SIGN_IN_REFUSED'
  | 'SIGN_IN_UNAVAILABLE'
  | 'SIZE_MISMATCH'
  | 'STAGE_NOT_REACHED'
  | 'STORAGE_FULL'
  | 'STORAGE_UNAVAILABLE'
  | 'TICKET_EXPIRED'
  | 'TOKEN_EXPIRED'
  | 'TOO_LARGE'
  | 'TOO_MANY_ARCHIVES'
  | 'TOO_MANY_AUTH_FAILURES'
  | 'TOO_MANY_BATCHES'
  | 'TOO_MANY_CONNECTIONS'
  | 'TOO_MANY_DELIVERIES'
  | 'TOO_MANY_EVENT_STREAMS'
  | 'TOO_MANY_KEYS'
  | 'TOO_MANY_REGISTRATIONS'
  | 'TOO_MANY_WEBHOOKS'
  | 'TOO_MANY_WRITES'
  | 'UNAUTHENTICATED'
  | 'UNKNOWN_HOST'
  | 'UNKNOWN_WEBHOOK_HOST'
  | 'UNSUPPORTED_CHECKSUM'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'UNSUPPORTED_TUS_VERSION'
  | 'UPLOAD_BROKEN'
  | 'UPLOAD_CHANGED'
  | 'UPLOAD_INTERRUPTED'
  | 'UPLOAD_IN_PROGRESS'
  | 'UPLOAD_LOCKED'
  | 'UPLOAD_MISSING'
  | 'UPLOAD_NOT_FOUND'
  | 'UPLOAD_STALLED'
  | 'UPLOAD_TOO_SLOW'
  | 'UPLOAD_URL_EXPIRED'
  | 'WEBHOOK_DISABLED'
  | 'WEBHOOK_NOT_FOUND'
