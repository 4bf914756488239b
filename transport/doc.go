// Package transport reaches one API server: [Load] finds out where it is and how to prove who is asking, [Open] turns
// that [Config] into a [Conn], and [Conn.Do] makes one authenticated, retrying round trip.
//
// It knows no kinds and no verbs: a [Request] is a method, a path and bytes. What the server refuses comes back as
// *apierrors.StatusError from k8s.io/apimachinery, also where the body is no Kubernetes Status.
package transport
