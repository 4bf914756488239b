// Package restconfig converts between connections of package transport and client-go's rest.Config, in both directions. A
// program logs in once:
//
//	conn, err := transport.Open(cfg)
//	…
//	clientset, err := kubernetes.NewForConfig(restconfig.FromConn(conn)) // client-go over anykind's login
//
//	conn, err := restconfig.ToConn(config) // anykind over client-go's login
//
// Requests, watches, exec, attach and port-forward work in both directions.
package restconfig
