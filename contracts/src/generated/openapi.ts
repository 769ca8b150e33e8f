// Made from contracts/openapi.yaml by `npm run generate`. Change that, not this.
export interface paths {
    "/openCypher": components["pathItems"]["OpenCypher"];
    "/opencypher": components["pathItems"]["OpenCypher"];
    "/gremlin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Run a Gremlin traversal from the query string
         * @description GET only reads. A traversal that writes is answered 405. With the header `Upgrade: websocket` the connection goes on in Gremlin Server's protocol; docs/gremlin-drivers.md describes it.
         */
        get: {
            parameters: {
                query: {
                    /** @description the traversal */
                    gremlin: string;
                };
                header?: {
                    /**
                     * @description A version from an earlier answer: the request reads this version or a later one. If the service has not reached
                     *     it yet, the request waits for ten seconds at most, and no longer than its own time limit. Then the answer is a
                     *     `ServiceUnavailableException`, and the client can send the request again.
                     */
                    "Tidegraph-Version"?: components["parameters"]["AtLeast"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: components["responses"]["Gremlin"];
                default: components["responses"]["Error"];
            };
        };
        put?: never;
        /** Run a Gremlin traversal */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /**
                     * @description A version from an earlier answer: the request reads this version or a later one. If the service has not reached
                     *     it yet, the request waits for ten seconds at most, and no longer than its own time limit. Then the answer is a
                     *     `ServiceUnavailableException`, and the client can send the request again.
                     */
                    "Tidegraph-Version"?: components["parameters"]["AtLeast"];
                    /**
                     * @description A key of the client for one write. A write that is sent again with its key, because its answer was lost, is
                     *     committed once. The answer to a repeat has the header `Idempotent-Replayed` and no rows. Another request with
                     *     the key is answered `IdempotencyKeyReusedException`. Reads ignore the key.
                     */
                    "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["GremlinRequest"];
                    "application/vnd.graphbinary-v1.0": string;
                };
            };
            responses: {
                200: components["responses"]["Gremlin"];
                default: components["responses"]["Error"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show the health, start time and version of the service */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description the service answers queries */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Status"];
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/fleet/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the status of a fleet's nodes
         * @description Queries all nodes. A service of one process answers 404.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description the nodes with their replicas and versions, and the nodes of each partition */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FleetStatus"];
                    };
                };
                default: components["responses"]["Error"];
            };
        };
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
         * Show the metrics of the process
         * @description Requests by route and status, their durations, refused input, memory and the newest version, in the format of Prometheus. docs/metrics.md lists the names.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description metrics in Prometheus text format 0.0.4 */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openCypher/explain": components["pathItems"]["OpenCypherExplain"];
    "/opencypher/explain": components["pathItems"]["OpenCypherExplain"];
    "/gremlin/explain": components["pathItems"]["GremlinExplain"];
    "/gremlin/profile": components["pathItems"]["GremlinExplain"];
    "/propertygraph/statistics": components["pathItems"]["Statistics"];
    "/pg/statistics": components["pathItems"]["Statistics"];
    "/propertygraph/statistics/summary": components["pathItems"]["GraphSummary"];
    "/pg/statistics/summary": components["pathItems"]["GraphSummary"];
    "/propertygraph/stream": components["pathItems"]["Stream"];
    "/pg/stream": components["pathItems"]["Stream"];
    "/gremlin/stream": components["pathItems"]["Stream"];
    "/system": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove all data of the graph, in two steps
         * @description `initiateDatabaseReset` answers with a token, which is valid once and for 60 minutes. `performDatabaseReset` with this token removes all vertices and edges as one version of the graph. A token that was used or has expired is answered `PreconditionsFailedException`.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ResetRequest"];
                    "application/x-www-form-urlencoded": components["schemas"]["ResetRequest"];
                };
            };
            responses: {
                /** @description the token, or that the graph is empty */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @constant */
                            status: "200 OK";
                            payload?: {
                                /** Format: uuid */
                                token: string;
                            };
                        };
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show what labels and properties the graph has, as Neptune Analytics does */
        get: {
            parameters: {
                query?: {
                    /** @description whether to list the structures of nodes and edges as well */
                    mode?: components["parameters"]["SummaryMode"];
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description the summary */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SummaryPayload"];
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the running queries, the oldest first */
        get: {
            parameters: {
                query?: {
                    /** @description most queries of the list */
                    maxResults?: number;
                    /** @description state of the listed queries */
                    state?: "ALL" | "RUNNING" | "WAITING" | "CANCELLING";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description the queries */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            queries: components["schemas"]["AnalyticsRunningQuery"][];
                        };
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        put?: never;
        /** Run an openCypher query, as Neptune Analytics does */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["AnalyticsQuery"];
                };
            };
            responses: {
                200: components["responses"]["OpenCypher"];
                default: components["responses"]["Error"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queries/{queryId}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of a running query */
                queryId: string;
            };
            cookie?: never;
        };
        /** Show a running query */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description the id of a running query */
                    queryId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description the query */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AnalyticsRunningQuery"];
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        put?: never;
        post?: never;
        /** Cancel a running query */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description the id of a running query */
                    queryId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description the query was asked to end; it ends soon after */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                default: components["responses"]["Error"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/graphs/{graphId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show that the graph is available
         * @description A service has one graph, which answers under every id.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description any id */
                    graphId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description the graph */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            name: string;
                            /** @constant */
                            status: "AVAILABLE";
                        };
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openCypher/status": components["pathItems"]["QueryList"];
    "/opencypher/status": components["pathItems"]["QueryList"];
    "/gremlin/status": components["pathItems"]["QueryList"];
    "/openCypher/status/{queryId}": components["pathItems"]["Query"];
    "/opencypher/status/{queryId}": components["pathItems"]["Query"];
    "/gremlin/status/{queryId}": components["pathItems"]["Query"];
    "/loader": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the loads, or show one when `loadId` is given */
        get: {
            parameters: {
                query?: {
                    /** @description the same as `GET /loader/{loadId}` */
                    loadId?: string;
                    /** @description number of ids to list, newest first */
                    limit?: number;
                    /** @description whether to list loads that wait in the queue */
                    includeQueuedLoads?: components["schemas"]["Switch"];
                    /** @description whether to list the failed and the skipped files */
                    details?: components["parameters"]["Details"];
                    /** @description whether to list the refused rows */
                    errors?: components["parameters"]["Errors"];
                    /** @description page of refused rows, starting at 1 */
                    page?: components["parameters"]["Page"];
                    /** @description number of refused rows on a page */
                    errorsPerPage?: components["parameters"]["ErrorsPerPage"];
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description the ids of the loads, or the status of one */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["loader-list.schema"] | components["schemas"]["loader-status.schema"];
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        put?: never;
        /**
         * Start a load or queue it
         * @description All data of a load becomes visible at once when the load ends, or none of it does. A source that the service may not read is refused with status 403, and one that does not exist with 400.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["loader-request.schema"];
                };
            };
            responses: {
                /** @description the load was accepted */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["loader-started.schema"];
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        /** Cancel a load */
        delete: {
            parameters: {
                query: {
                    /** @description the same as `DELETE /loader/{loadId}` */
                    loadId: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: components["responses"]["Cancelled"];
                default: components["responses"]["Error"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/loader/{loadId}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id from the answer of `POST /loader` */
                loadId: string;
            };
            cookie?: never;
        };
        /** Show the progress of a load and the rows that it refused */
        get: {
            parameters: {
                query?: {
                    /** @description whether to list the failed and the skipped files */
                    details?: components["parameters"]["Details"];
                    /** @description whether to list the refused rows */
                    errors?: components["parameters"]["Errors"];
                    /** @description page of refused rows, starting at 1 */
                    page?: components["parameters"]["Page"];
                    /** @description number of refused rows on a page */
                    errorsPerPage?: components["parameters"]["ErrorsPerPage"];
                };
                header?: never;
                path: {
                    /** @description the id from the answer of `POST /loader` */
                    loadId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description the status of the load */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["loader-status.schema"];
                    };
                };
                default: components["responses"]["Error"];
            };
        };
        put?: never;
        post?: never;
        /** Cancel a load */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description the id from the answer of `POST /loader` */
                    loadId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                200: components["responses"]["Cancelled"];
                default: components["responses"]["Error"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description a truth value, as a JSON boolean or as text in any case */
        Switch: boolean | string;
        OpenCypherRequest: {
            query: string;
            /** @description the query's parameters by name, as an object or as its JSON text */
            parameters?: {
                [key: string]: unknown;
            } | string;
            /**
             * @description answers with the plan (static), or with what each operator did, instead of with rows
             * @enum {string}
             */
            explain?: "static" | "dynamic" | "details";
            /** @description id of the query in answers, in the log and in requests to cancel the query; random if absent */
            queryId?: string;
            /** @description time limit of the query in milliseconds; the limit of the service applies too */
            queryTimeoutMilliseconds?: number;
        };
        OpenCypherForm: {
            query: string;
            /** @description a JSON object with the query's parameters */
            parameters?: string;
            /**
             * @description answers with the plan (static), or with what each operator did, instead of with rows
             * @enum {string}
             */
            explain?: "static" | "dynamic" | "details";
            /** @description id of the query in answers, in the log and in requests to cancel the query; random if absent */
            queryId?: string;
            /** @description time limit of the query in milliseconds; the limit of the service applies too */
            queryTimeoutMilliseconds?: number;
        };
        GremlinRequest: {
            gremlin: string;
            /** @description values of the traversal's variables */
            bindings?: {
                [key: string]: unknown;
            };
            /** @description id of the query in answers, in the log and in requests to cancel the query; random if absent */
            queryId?: string;
            /** @description time limit of the query in milliseconds; the limit of the service applies too */
            queryTimeoutMilliseconds?: number;
        };
        OpenCypherAnswer: {
            results: {
                [key: string]: components["schemas"]["Value"];
            }[];
        };
        /** @description a value of an openCypher answer */
        Value: unknown;
        Map: {
            "~entityType"?: never;
        } & {
            [key: string]: components["schemas"]["Value"];
        };
        Node: {
            "~id": string;
            /** @constant */
            "~entityType": "node";
            "~labels": string[];
            "~properties": {
                [key: string]: components["schemas"]["Value"];
            };
        };
        Relationship: {
            "~id": string;
            /** @constant */
            "~entityType": "relationship";
            /** @description id of the source node */
            "~start": string;
            /** @description id of the target node */
            "~end": string;
            "~type": string;
            "~properties": {
                [key: string]: components["schemas"]["Value"];
            };
        };
        /** @description alternating nodes and relationships, starting and ending with a node */
        Path: (components["schemas"]["Node"] | components["schemas"]["Relationship"])[];
        GremlinAnswer: {
            requestId: string;
            status: {
                message: string;
                code: number;
                attributes: components["schemas"]["GraphsonMap"];
            };
            result: {
                data: components["schemas"]["GraphsonList"];
                meta: components["schemas"]["GraphsonMap"];
            };
        };
        /** @description a GraphSON 3 value; text, truth values and null are plain, all other values name their type */
        GraphsonValue: null | boolean | string | components["schemas"]["GraphsonTyped"];
        GraphsonTyped: {
            "@type": string;
            "@value": unknown;
        };
        GraphsonList: {
            /** @constant */
            "@type": "g:List";
            "@value": components["schemas"]["GraphsonValue"][];
        };
        /** @description alternating keys and values */
        GraphsonMap: {
            /** @constant */
            "@type": "g:Map";
            "@value": components["schemas"]["GraphsonValue"][];
        };
        AnalyticsQuery: {
            query: string;
            /** @constant */
            language: "OPEN_CYPHER";
            parameters?: Record<string, never>;
            /** @enum {string} */
            planCache?: "ENABLED" | "DISABLED" | "AUTO";
            /** @enum {string} */
            explain?: "STATIC" | "DETAILS";
            queryTimeoutMilliseconds?: number;
        };
        AnalyticsRunningQuery: {
            id: string;
            queryString: string;
            /** @description always 0; milliseconds in the queue in Neptune's answer */
            waited: number;
            /** @description milliseconds since the query arrived */
            elapsed: number;
            /** @enum {string} */
            state: "RUNNING" | "CANCELLING";
        };
        /** @description A step of a fast reset. */
        ResetRequest: {
            /** @enum {string} */
            action: "initiateDatabaseReset" | "performDatabaseReset";
            /** @description what `initiateDatabaseReset` answered; only for `performDatabaseReset` */
            token?: string;
        };
        StatisticsPayload: {
            /** @constant */
            autoCompute: true;
            /** @constant */
            active: true;
            /** @description the version of the graph that the statistics describe */
            statisticsId: string;
            /** Format: date-time */
            date: string;
            note: string;
            signatureInfo: {
                signatureCount: number;
                instanceCount: number;
                predicateCount: number;
            };
        };
        StreamEvent: {
            /**
             * Format: int64
             * @description the version of the commit; versions without records lie between
             */
            commitNum: number;
            /**
             * Format: int64
             * @description number of the record in the commit, from 1
             */
            opNum: number;
        };
        StreamRecords: {
            lastEventId: components["schemas"]["StreamEvent"];
            /**
             * Format: int64
             * @description when the last of these commits was taken, in milliseconds since 1970
             */
            lastTrxTimestamp: number;
            /** @constant */
            format: "PG_JSON";
            records: components["schemas"]["StreamRecord"][];
            totalRecords: number;
        };
        StreamRecord: {
            /**
             * Format: int64
             * @description when the commit was taken, in milliseconds since 1970
             */
            commitTimestamp: number;
            eventId: components["schemas"]["StreamEvent"];
            data: {
                /** @description id of the node or the edge */
                id: string;
                /**
                 * @description label of a node, property of a node, edge, property of an edge
                 * @enum {string}
                 */
                type: "vl" | "vp" | "e" | "ep";
                /** @description the property; `label` for a label or an edge */
                key: string;
                value: {
                    /** @description a number that is not finite, and a date, are text */
                    value: string | number | boolean;
                    /** @enum {string} */
                    dataType: "String" | "Boolean" | "Byte" | "Short" | "Int" | "Long" | "Float" | "Double" | "Date";
                };
                /** @description id of the source of an edge */
                from?: string;
                /** @description id of the target of an edge */
                to?: string;
            };
            /** @enum {string} */
            op: "ADD" | "REMOVE";
            /**
             * @description there if this is the last record of its commit
             * @constant
             */
            isLastOp?: true;
        };
        SummaryPayload: {
            /** @constant */
            version: "v1";
            /** Format: date-time */
            lastStatisticsComputationTime: string;
            graphSummary: components["schemas"]["GraphSummary"];
        };
        GraphSummary: {
            numNodes: number;
            numEdges: number;
            numNodeLabels: number;
            numEdgeLabels: number;
            nodeLabels: string[];
            edgeLabels: string[];
            numNodeProperties: number;
            numEdgeProperties: number;
            /** @description for each property, the number of nodes that have it */
            nodeProperties: {
                [key: string]: number;
            }[];
            edgeProperties: {
                [key: string]: number;
            }[];
            totalNodePropertyValues: number;
            totalEdgePropertyValues: number;
            nodeStructures?: {
                count: number;
                nodeProperties: string[];
                distinctOutgoingEdgeLabels: string[];
            }[];
            edgeStructures?: {
                count: number;
                edgeProperties: string[];
            }[];
        };
        QueryList: {
            /** @description number of queries since the start of the service */
            acceptedQueryCount: number;
            runningQueryCount: number;
            queries: components["schemas"]["RunningQuery"][];
        };
        RunningQuery: {
            queryId: string;
            queryString: string;
            queryEvalStats: {
                /** @description always 0; milliseconds in the queue in Neptune's answer */
                waited?: number;
                /** @description milliseconds since the query arrived */
                elapsed: number;
                cancelled: boolean;
            };
        };
        QueryCancelled: {
            /** @constant */
            status: "200 OK";
            payload?: boolean;
        };
        Status: {
            /** @enum {string} */
            status: "healthy" | "recovery" | "read-only" | "stopping";
            startTime: string;
            dbEngineVersion: string;
            /** @enum {string} */
            role: "writer" | "reader";
            dfeQueryEngine?: string;
            gremlin: components["schemas"]["LanguageVersion"];
            opencypher: components["schemas"]["LanguageVersion"];
            labMode?: {
                [key: string]: string;
            };
            features?: {
                [key: string]: unknown;
            };
            settings?: {
                [key: string]: string;
            };
            /** @description memory of all running queries and of the answers that are not sent yet */
            queryMemory?: {
                usedBytes: number;
                limitBytes: number;
            };
        };
        FleetStatus: {
            mapEpoch: number;
            /** @description version of a record that no replica can apply, so that writes are stopped; null if there is none */
            haltedVersion?: number | null;
            /** @description what splits into more partitions changed, and change at the moment; empty if there was none */
            splits?: {
                /** @description number of partitions with which the graph was created */
                createdWith?: number;
                /** @description number of partitions into which the graph is being split */
                into?: number;
                /** @description number of partitions before the last split, while nodes may hold some of these */
                from?: number;
            };
            nodes: {
                id: string;
                zone: string;
                endpoint: string;
                /** @enum {string} */
                state: "joining" | "up" | "draining" | "gone";
                /** @description the node's answer; null if the node was not queried */
                says?: {
                    [key: string]: unknown;
                } | null;
            }[];
            partitions: {
                partition: number;
                replicas: {
                    node: string;
                    /** @enum {string} */
                    state: "restoring" | "catching-up" | "serving" | "leaving";
                }[];
            }[];
        };
        LanguageVersion: {
            version: string;
        };
        LoaderRequest: components["schemas"]["loader-request.schema"];
        LoaderStarted: components["schemas"]["loader-started.schema"];
        LoaderCancelled: components["schemas"]["loader-cancelled.schema"];
        LoaderList: components["schemas"]["loader-list.schema"];
        LoaderStatus: components["schemas"]["loader-status.schema"];
        ErrorBody: components["schemas"]["error-body.schema"];
        RejectedRow: components["schemas"]["rejected-row.schema"];
        /**
         * ErrorBody
         * @description The answer to every failed request
         */
        "error-body.schema": {
            /** @description id of the request, which the service's log has too */
            requestId: string;
            /** @description a code of contracts/errors.json */
            code: string;
            /** @description message for people; its text may change */
            detailedMessage: string;
            /** @description the same message, under the name that some clients read */
            message?: string;
        };
        /** LoaderList */
        "loader-list.schema": {
            /** @constant */
            status: "200 OK";
            payload: {
                /** @description newest first */
                loadIds: string[];
            };
        };
        /** @enum {string} */
        state: "LOAD_NOT_STARTED" | "LOAD_IN_QUEUE" | "LOAD_IN_PROGRESS" | "LOAD_COMPLETED" | "LOAD_CANCELLED_BY_USER" | "LOAD_CANCELLED_DUE_TO_ERRORS" | "LOAD_UNEXPECTED_ERROR" | "LOAD_FAILED" | "LOAD_S3_READ_ERROR" | "LOAD_S3_ACCESS_DENIED_ERROR" | "LOAD_COMMITTED_W_WRITE_CONFLICTS" | "LOAD_DATA_DEADLOCK" | "LOAD_DATA_FAILED_DUE_TO_FEED_MODIFIED_OR_DELETED" | "LOAD_FAILED_BECAUSE_DEPENDENCY_NOT_SATISFIED" | "LOAD_FAILED_INVALID_REQUEST";
        feed: {
            fullUri: string;
            runNumber: number;
            retryNumber: number;
            status: components["schemas"]["state"];
            /** @description seconds */
            totalTimeSpent: number;
            /** @description seconds since 1970 */
            startTime: number;
            totalRecords: number;
            totalDuplicates: number;
            parsingErrors: number;
            datatypeMismatchErrors: number;
            insertErrors: number;
            /** @description fields that Neptune's answer does not have */
            tidegraph?: {
                /** @description number of unchanged files that an earlier load of the source made visible */
                skippedFiles?: number;
                /** @description names of the unchanged files; only with details */
                skipped?: string[];
            };
        };
        /**
         * RejectedRow
         * @description A row that a load refused, with its place and the reason. `column` and `value` are not in Neptune's answer.
         */
        "rejected-row.schema": {
            /** @enum {string} */
            errorCode: "PARSING_ERROR" | "FROM_OR_TO_VERTEX_ARE_MISSING" | "ID_ASSIGNED_TO_MULTIPLE_EDGES" | "SINGLE_CARDINALITY_VIOLATION" | "UNIQUE_CONSTRAINT_VIOLATION" | "FILE_MODIFICATION_OR_DELETION_ERROR" | "S3_ACCESS_DENIED_ERROR" | "INTERNAL_ERROR";
            /** @description the reason, which includes the value */
            errorMessage: string;
            /** @description URI of the file */
            fileName: string;
            /** @description line on which the row begins; the header is line 1; 0 if the error is about the whole file */
            recordNum: number;
            /** @description the header of the field */
            column?: string;
            /** @description the text of the field in the file; long text is cut */
            value?: string;
        };
        /** LoaderStatus */
        "loader-status.schema": {
            /** @constant */
            status: "200 OK";
            payload: {
                /** @description numbers of files by state */
                feedCount: {
                    [key: string]: number;
                }[];
                overallStatus: components["schemas"]["feed"];
                failedFeeds?: components["schemas"]["feed"][];
                errors?: {
                    startIndex: number;
                    endIndex: number;
                    loadId: string;
                    errorLogs: components["schemas"]["rejected-row.schema"][];
                };
            };
        };
        switch: boolean | string;
        /**
         * LoaderRequest
         * @description A load and its options
         */
        "loader-request.schema": {
            /** @description an s3:// or file:// URI of a file or of a folder that the service may load from, or several that become visible together */
            source: string | string[];
            /**
             * @description csv is Gremlin's dialect
             * @enum {string}
             */
            format: "csv" | "opencypher";
            /** @description region of the bucket, such as `eu-central-1` */
            region?: string;
            /** @description accepted for compatibility; a local service uses its own credentials */
            iamRoleArn?: string;
            /**
             * @description RESUME continues a failed load of the same source and skips files that have not changed; NEW loads all files; AUTO resumes if possible
             * @default AUTO
             * @enum {string}
             */
            mode?: "RESUME" | "NEW" | "AUTO";
            /**
             * @description whether one bad row fails the load
             * @default TRUE
             */
            failOnError?: components["schemas"]["switch"];
            /**
             * @default HIGH
             * @enum {string}
             */
            parallelism?: "LOW" | "MEDIUM" | "HIGH" | "OVERSUBSCRIBE";
            parserConfiguration?: {
                namedGraphUri?: string;
                baseUri?: string;
                allowEmptyStrings?: components["schemas"]["switch"];
            };
            /**
             * @description whether a new value of a single property replaces the old one instead of being an error
             * @default FALSE
             */
            updateSingleCardinalityProperties?: components["schemas"]["switch"];
            /**
             * @description whether to wait behind a running load instead of being refused
             * @default FALSE
             */
            queueRequest?: components["schemas"]["switch"];
            /** @description ids of loads that must complete before this load starts */
            dependencies?: string[];
            /**
             * @description openCypher CSV only: whether relationship files have an :ID column
             * @default TRUE
             */
            userProvidedEdgeIds?: components["schemas"]["switch"];
            /**
             * @description skip the pass that loads vertices first
             * @default FALSE
             */
            edgeOnlyLoad?: components["schemas"]["switch"];
        };
        /** LoaderStarted */
        "loader-started.schema": {
            /** @constant */
            status: "200 OK";
            payload: {
                loadId: string;
            };
        };
        /** LoaderCancelled */
        "loader-cancelled.schema": {
            /** @constant */
            status: "200 OK";
        };
    };
    responses: {
        /** @description the plan, or what each of its operators did */
        Explanation: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
                "text/html": string;
                "application/json": components["schemas"]["OpenCypherAnswer"];
            };
        };
        /** @description the rows, each with a value for every column */
        OpenCypher: {
            headers: {
                "Tidegraph-Version": components["headers"]["Version"];
                "Idempotent-Replayed": components["headers"]["Replayed"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["OpenCypherAnswer"];
            };
        };
        /** @description the results of the traversal, in the first format of the header Accept that there is; in GraphSON 3 without one. docs/gremlin-drivers.md lists the formats. */
        Gremlin: {
            headers: {
                "Tidegraph-Version": components["headers"]["Version"];
                "Idempotent-Replayed": components["headers"]["Replayed"];
                [name: string]: unknown;
            };
            content: {
                "application/vnd.gremlin-v3.0+json": components["schemas"]["GremlinAnswer"];
                "application/json": components["schemas"]["GremlinAnswer"];
                "application/vnd.graphbinary-v1.0": string;
            };
        };
        /** @description the load was cancelled */
        Cancelled: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["loader-cancelled.schema"];
            };
        };
        /**
         * @description The request failed as a whole; nothing of it was written. The one exception is the code
         *     `CommitOutcomeUnknownException` (status 520): it is not known whether the write was committed.
         */
        Error: {
            headers: {
                /** @description seconds after which a request that was refused because of the load may be sent again */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["error-body.schema"];
            };
        };
    };
    parameters: {
        /**
         * @description A version from an earlier answer: the request reads this version or a later one. If the service has not reached
         *     it yet, the request waits for ten seconds at most, and no longer than its own time limit. Then the answer is a
         *     `ServiceUnavailableException`, and the client can send the request again.
         */
        AtLeast: number;
        /**
         * @description A key of the client for one write. A write that is sent again with its key, because its answer was lost, is
         *     committed once. The answer to a repeat has the header `Idempotent-Replayed` and no rows. Another request with
         *     the key is answered `IdempotencyKeyReusedException`. Reads ignore the key.
         */
        IdempotencyKey: string;
        /** @description whether to list the failed and the skipped files */
        Details: components["schemas"]["Switch"];
        /** @description whether to list the refused rows */
        Errors: components["schemas"]["Switch"];
        /** @description page of refused rows, starting at 1 */
        Page: number;
        /** @description number of refused rows on a page */
        ErrorsPerPage: number;
        /** @description whether to list the structures of nodes and edges as well */
        SummaryMode: "basic" | "detailed";
    };
    requestBodies: never;
    headers: {
        /** @description present if an earlier request with the same `Idempotency-Key` was committed, and this one did nothing */
        Replayed: "true";
        /** @description the version of the graph that was read or that a write created */
        Version: number;
    };
    pathItems: {
        OpenCypher: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            /**
             * Run an openCypher query from the query string
             * @description GET only reads. A query that writes is answered 405.
             */
            get: {
                parameters: {
                    query: {
                        /** @description the query */
                        query: string;
                        /** @description a JSON object with the query's parameters */
                        parameters?: string;
                    };
                    header?: {
                        /**
                         * @description A version from an earlier answer: the request reads this version or a later one. If the service has not reached
                         *     it yet, the request waits for ten seconds at most, and no longer than its own time limit. Then the answer is a
                         *     `ServiceUnavailableException`, and the client can send the request again.
                         */
                        "Tidegraph-Version"?: components["parameters"]["AtLeast"];
                    };
                    path?: never;
                    cookie?: never;
                };
                requestBody?: never;
                responses: {
                    200: components["responses"]["OpenCypher"];
                    default: components["responses"]["Error"];
                };
            };
            put?: never;
            /** Run an openCypher query */
            post: {
                parameters: {
                    query?: never;
                    header?: {
                        /**
                         * @description A version from an earlier answer: the request reads this version or a later one. If the service has not reached
                         *     it yet, the request waits for ten seconds at most, and no longer than its own time limit. Then the answer is a
                         *     `ServiceUnavailableException`, and the client can send the request again.
                         */
                        "Tidegraph-Version"?: components["parameters"]["AtLeast"];
                        /**
                         * @description A key of the client for one write. A write that is sent again with its key, because its answer was lost, is
                         *     committed once. The answer to a repeat has the header `Idempotent-Replayed` and no rows. Another request with
                         *     the key is answered `IdempotencyKeyReusedException`. Reads ignore the key.
                         */
                        "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                    };
                    path?: never;
                    cookie?: never;
                };
                requestBody: {
                    content: {
                        "application/json": components["schemas"]["OpenCypherRequest"];
                        "application/x-www-form-urlencoded": components["schemas"]["OpenCypherForm"];
                    };
                };
                responses: {
                    200: components["responses"]["OpenCypher"];
                    default: components["responses"]["Error"];
                };
            };
            delete?: never;
            options?: never;
            head?: never;
            patch?: never;
            trace?: never;
        };
        OpenCypherExplain: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            get?: never;
            put?: never;
            /**
             * Explain an openCypher query
             * @description Answers with the plan of a query, which is not run (`static`), or runs it and answers with what each operator did (`dynamic`, `details`): text, HTML, or rows as JSON, as `Accept` asks.
             */
            post: {
                parameters: {
                    query?: never;
                    header?: never;
                    path?: never;
                    cookie?: never;
                };
                requestBody: {
                    content: {
                        "application/json": components["schemas"]["OpenCypherRequest"];
                        "application/x-www-form-urlencoded": components["schemas"]["OpenCypherForm"];
                    };
                };
                responses: {
                    200: components["responses"]["Explanation"];
                    default: components["responses"]["Error"];
                };
            };
            delete?: never;
            options?: never;
            head?: never;
            patch?: never;
            trace?: never;
        };
        GremlinExplain: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            get?: never;
            put?: never;
            /**
             * Explain a traversal, or run it and measure it
             * @description `/gremlin/explain` answers with the plan of a traversal, which is not run. `/gremlin/profile` runs it and answers with what each operator did. Text, HTML, or rows as JSON, as `Accept` asks.
             */
            post: {
                parameters: {
                    query?: never;
                    header?: never;
                    path?: never;
                    cookie?: never;
                };
                requestBody: {
                    content: {
                        "application/json": components["schemas"]["GremlinRequest"];
                    };
                };
                responses: {
                    200: components["responses"]["Explanation"];
                    default: components["responses"]["Error"];
                };
            };
            delete?: never;
            options?: never;
            head?: never;
            patch?: never;
            trace?: never;
        };
        Statistics: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            /** Show that there are statistics */
            get: {
                parameters: {
                    query?: never;
                    header?: never;
                    path?: never;
                    cookie?: never;
                };
                requestBody?: never;
                responses: {
                    /** @description the state of the statistics, which every write keeps current */
                    200: {
                        headers: {
                            [name: string]: unknown;
                        };
                        content: {
                            "application/json": {
                                /** @constant */
                                status: "200 OK";
                                payload: components["schemas"]["StatisticsPayload"];
                            };
                        };
                    };
                    default: components["responses"]["Error"];
                };
            };
            put?: never;
            /**
             * Refresh the statistics
             * @description `refresh` and `enableAutoCompute` have no effect, because the statistics are current. `disableAutoCompute` is refused.
             */
            post: {
                parameters: {
                    query?: never;
                    header?: never;
                    path?: never;
                    cookie?: never;
                };
                requestBody: {
                    content: {
                        "application/json": {
                            /** @enum {string} */
                            mode: "refresh" | "enableAutoCompute" | "disableAutoCompute";
                        };
                    };
                };
                responses: {
                    /** @description the id of the statistics, for `refresh` */
                    200: {
                        headers: {
                            [name: string]: unknown;
                        };
                        content: {
                            "application/json": {
                                /** @constant */
                                status: "200 OK";
                                payload?: {
                                    statisticsId: string;
                                };
                            };
                        };
                    };
                    default: components["responses"]["Error"];
                };
            };
            /** Refused, because the planner reads the statistics */
            delete: {
                parameters: {
                    query?: never;
                    header?: never;
                    path?: never;
                    cookie?: never;
                };
                requestBody?: never;
                responses: {
                    default: components["responses"]["Error"];
                };
            };
            options?: never;
            head?: never;
            patch?: never;
            trace?: never;
        };
        Stream: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            /**
             * Read what each transaction changed, in Neptune's format PG_JSON
             * @description Needs the flag `--streams`; without it the request is refused with `UnsupportedOperationException`. A request that begins behind the newest change is answered 404 `StreamRecordsNotFoundException`, one whose changes are no longer kept `ExpiredStreamException`. An answer also ends with the record that reaches about 10 MiB.
             */
            get: {
                parameters: {
                    query?: {
                        /** @description where to begin; `LATEST` answers with the newest record alone */
                        iteratorType?: "AT_SEQUENCE_NUMBER" | "AFTER_SEQUENCE_NUMBER" | "TRIM_HORIZON" | "LATEST";
                        /** @description number of a commit, which is its version; required for the first two types */
                        commitNum?: number;
                        /** @description number of a record of the commit */
                        opNum?: number;
                        /** @description maximum number of records */
                        limit?: number;
                    };
                    header?: never;
                    path?: never;
                    cookie?: never;
                };
                requestBody?: never;
                responses: {
                    /** @description the records, in order */
                    200: {
                        headers: {
                            [name: string]: unknown;
                        };
                        content: {
                            "application/json": components["schemas"]["StreamRecords"];
                        };
                    };
                    default: components["responses"]["Error"];
                };
            };
            put?: never;
            post?: never;
            delete?: never;
            options?: never;
            head?: never;
            patch?: never;
            trace?: never;
        };
        GraphSummary: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            /**
             * Show what labels and properties the graph has
             * @description Counts by label are exact; those of properties and structures come from the planner's statistics and are near the truth.
             */
            get: {
                parameters: {
                    query?: {
                        /** @description whether to list the structures of nodes and edges as well */
                        mode?: components["parameters"]["SummaryMode"];
                    };
                    header?: never;
                    path?: never;
                    cookie?: never;
                };
                requestBody?: never;
                responses: {
                    /** @description the summary */
                    200: {
                        headers: {
                            [name: string]: unknown;
                        };
                        content: {
                            "application/json": {
                                /** @constant */
                                status: "200 OK";
                                payload: components["schemas"]["SummaryPayload"];
                            };
                        };
                    };
                    default: components["responses"]["Error"];
                };
            };
            put?: never;
            post?: never;
            delete?: never;
            options?: never;
            head?: never;
            patch?: never;
            trace?: never;
        };
        QueryList: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            /** List the running and waiting queries, or cancel one */
            get: {
                parameters: {
                    query?: {
                        /** @description whether to cancel the query that `queryId` names */
                        cancelQuery?: components["schemas"]["Switch"];
                        /** @description the query to cancel */
                        queryId?: string;
                        /** @description whether to succeed, instead of answering an error, if the query to cancel has ended */
                        silent?: components["schemas"]["Switch"];
                    };
                    header?: never;
                    path?: never;
                    cookie?: never;
                };
                requestBody?: never;
                responses: {
                    /** @description the queries, or the confirmation that one was cancelled */
                    200: {
                        headers: {
                            [name: string]: unknown;
                        };
                        content: {
                            "application/json": components["schemas"]["QueryList"] | components["schemas"]["QueryCancelled"];
                        };
                    };
                    default: components["responses"]["Error"];
                };
            };
            put?: never;
            post?: never;
            delete?: never;
            options?: never;
            head?: never;
            patch?: never;
            trace?: never;
        };
        Query: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description the id that the request chose or was given */
                    queryId: string;
                };
                cookie?: never;
            };
            /** Show one running query */
            get: {
                parameters: {
                    query?: never;
                    header?: never;
                    path: {
                        /** @description the id that the request chose or was given */
                        queryId: string;
                    };
                    cookie?: never;
                };
                requestBody?: never;
                responses: {
                    /** @description the query */
                    200: {
                        headers: {
                            [name: string]: unknown;
                        };
                        content: {
                            "application/json": components["schemas"]["RunningQuery"];
                        };
                    };
                    default: components["responses"]["Error"];
                };
            };
            put?: never;
            post?: never;
            /** Cancel a query */
            delete: {
                parameters: {
                    query?: {
                        /** @description whether to succeed, instead of answering an error, if the query to cancel has ended */
                        silent?: components["schemas"]["Switch"];
                    };
                    header?: never;
                    path: {
                        /** @description the id that the request chose or was given */
                        queryId: string;
                    };
                    cookie?: never;
                };
                requestBody?: never;
                responses: {
                    /** @description the query was asked to end; it ends soon after */
                    200: {
                        headers: {
                            [name: string]: unknown;
                        };
                        content: {
                            "application/json": components["schemas"]["QueryCancelled"];
                        };
                    };
                    default: components["responses"]["Error"];
                };
            };
            options?: never;
            head?: never;
            patch?: never;
            trace?: never;
        };
    };
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
