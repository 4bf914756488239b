// Package transport connects to one API server with authenticated requests that are retried:
//
//	cfg, err := transport.Load(ctx, nil) // kubeconfig, service account or kubectl proxy
//	if err != nil {
//		return err
//	}
//	conn, err := transport.Open(cfg)
//	if err != nil {
//		return err
//	}
//	defer conn.Close()
//	response, err := conn.Do(ctx, &transport.Request{Path: "/api/v1/namespaces/shop/pods"})
//	if err != nil {
//		return err // an *apierrors.StatusError if the server rejected it
//	}
//	defer response.Body.Close()
//
// [LoadOptions] choose a context, a parsed kubeconfig or the service account first, and [LoadKubeconfig] returns the contexts
// for a program that connects to several clusters. [New] makes a [Conn] of an HTTP client that authenticates by itself, and [OpenKubectl] one of the user's own kubectl.
// [Conn.Upgrade] opens a WebSocket's connection, and [Conn.RoundTrip] sends any HTTP request with the connection's credential.
//
// The package does not know kinds or verbs: a [Request] is a method, a path and bytes. A response that rejects a request is an
// *apierrors.StatusError of k8s.io/apimachinery, also if its body is no Kubernetes Status.
package transport
