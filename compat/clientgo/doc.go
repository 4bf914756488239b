// Package clientgo implements client-go's interfaces over anykind, so that code that takes them keeps working:
//
//	conn, err := transport.Open(cfg)
//	…
//	client := clientgo.NewDynamic(conn) // client-go's dynamic.Interface
//
// NewDynamic returns a dynamic.Interface, NewDiscovery a discovery.CachedDiscoveryInterface, WrapRESTClientGetter what
// cli-runtime, Helm and kubectl plugins take, over their own getter and its flags, and NewRESTClientGetter the same for a connection
// without flags. NewDynamicSharedInformerFactory has informers over package cache. For typed clients, see package restconfig.
package clientgo
