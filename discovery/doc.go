// Package discovery asks an API server what it serves: the groups, their versions, and of each resource its kind,
// scope, verbs, names and subresources. [Client] asks, and keeps the latest answer as an immutable [Snapshot].
//
// A server that offers aggregated discovery (KEP-3352) is asked two requests, /api and /apis; an older one is also
// asked for each group version, in parallel. The API is described at
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api.
package discovery
