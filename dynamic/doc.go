// Package dynamic is the client: [Connect] it to a server, ask it for a [Resource] by any name that kubectl takes,
// and use the resource's verbs. Objects are maps, [unstructured.Object]; no kind needs generated code.
//
// What the server refuses is a *apierrors.StatusError of k8s.io/apimachinery, to which those errors unwrap that tell
// more: [*ApplyConflictError], [*FieldsError], [*DisruptionError]. What can be seen to be wrong before a
// request leaves is a [*RefusedError]; an unknown or ambiguous name is an error of package restmapper.
//
// Options are apimachinery's own, passed by pointer; nil means defaults. Iterators make no request before they are
// ranged over, yield an error once and last, and close their connection when the loop is left.
// The API's conventions are at https://kubernetes.io/docs/reference/using-api/api-concepts/.
package dynamic
