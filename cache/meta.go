package cache

import "k8s.io/apimachinery/pkg/types"

// meta is what the cache itself reads of an object.
type meta struct {
	key    Key
	uid    types.UID
	labels func() map[string]string
}

func metaOf[T any, P Object[T]](obj *T) meta {
	p := P(obj)
	return meta{Key{p.GetNamespace(), p.GetName()}, p.GetUID(), p.GetLabels}
}
