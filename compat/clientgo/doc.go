// Package clientgo implements client-go's interfaces over anykind. Code that takes these interfaces keeps working:
//
//	conn, err := transport.Open(cfg)
//	…
//	client := clientgo.NewDynamic(conn) // client-go's dynamic.Interface
//
// NewDynamic returns a dynamic.Interface and NewDiscovery a discovery.CachedDiscoveryInterface. WrapRESTClientGetter returns the
// RESTClientGetter of cli-runtime, Helm and kubectl plugins over the program's own getter and its flags. NewRESTClientGetter
// returns a RESTClientGetter over a connection without flags. NewDynamicSharedInformerFactory has informers over package cache.
// For typed clients, see package restconfig.
package clientgo
