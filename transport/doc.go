// Package transport connects to an API server with authenticated, retried requests:
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
// [LoadOptions] choose a context, a parsed kubeconfig or the service account first, and [LoadKubeconfig] returns the contexts for
// a program with connections to several clusters. [New] makes a [Conn] from an authenticated HTTP client, and [OpenKubectl] from
// the user's kubectl. [Conn.Upgrade] opens the connection of a WebSocket, and [Conn.RoundTrip] sends any HTTP request with the
// connection's credential.
//
// The package does not know kinds or verbs: a [Request] is a method, a path and bytes. A rejected request is an
// *apierrors.StatusError of k8s.io/apimachinery, even if the response's body is not a Kubernetes Status.
package transport
