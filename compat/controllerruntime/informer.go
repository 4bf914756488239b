package controllerruntime

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/compat/sharedinformer"
	"github.com/anykind/anykind/dynamic"
)

// informer is a client-go SharedIndexInformer of a kind in a form, in a single namespace or in all.
type informer struct {
	*sharedinformer.Informer[cached, *cached]
	of        kindForm
	namespace string // "" for all
	source    *source

	labelSelector, fieldSelector string
}

// newInformer returns an informer. It sets Name, Source, Export and Import of config.
func newInformer(of kindForm, namespace string, src *source, config *sharedinformer.Config[cached]) *informer {
	config.Name = of.gvk.String()
	config.Source = src
	config.Export = func(obj *cached) any { return obj.Object }
	config.Import = func(obj any) (*cached, bool) {
		own, ok := obj.(client.Object)
		return &cached{own}, ok
	}
	shared := sharedinformer.New[cached, *cached](config)
	src.report = shared.Report
	return &informer{shared, of, namespace, src, config.LabelSelector, config.FieldSelector}
}

// uid returns the UID of a cached object, "" if there is none.
func (i *informer) uid(key client.ObjectKey) types.UID {
	if c := i.Cache(); c != nil {
		if obj, found := c.Get(key.Namespace, key.Name); found {
			return obj.GetUID()
		}
	}
	return ""
}

// recordWrite records a write that a read must find. Writes to other namespaces are ignored.
func (i *informer) recordWrite(w dynamic.Write) {
	if c := i.Cache(); c != nil && (i.namespace == "" || i.namespace == w.Namespace) {
		c.RecordWrite(w)
	}
}

// waitForWrites waits until the cache has the recorded writes: to the keys or, without keys, to all objects.
func (i *informer) waitForWrites(ctx context.Context, keys ...client.ObjectKey) error {
	c := i.Cache()
	if c == nil {
		return nil
	}
	return c.WaitForWrites(ctx, keys...)
}
