//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const (
	objectNamespace = "default"
	objectSize      = 2000 // bytes of data
	writers         = 16
)

// world has the objects on the server.
type world struct {
	objects *dynamic.Resource
	count   int
	changed int
}

// newWorld creates the objects.
func newWorld(ctx context.Context, client *dynamic.Client, count int) (*world, error) {
	w := &world{client.ForGVR(configMaps).Namespace(objectNamespace), count, 0}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range count {
		group.Go(func() error {
			obj := &unstructured.Object{Object: map[string]any{"data": map[string]any{"text": strings.Repeat("text ", objectSize/5)}}}
			obj.SetName(nameOf(i))
			_, err := w.objects.Create(ctx, obj, nil)
			return err
		})
	}
	return w, group.Wait()
}

func nameOf(i int) string { return fmt.Sprintf("object-%d", i) }

// change changes objects in turn, at a rate a second.
func (w *world) change(ctx context.Context, rate int, duration time.Duration) error {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for range rate * int(duration/time.Second) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return group.Wait()
		}
		w.changed++
		name := nameOf(w.changed % w.count)
		patch := fmt.Appendf(nil, `{"data":{"change":"%d"}}`, w.changed)
		group.Go(func() error {
			_, err := w.objects.Patch(ctx, name, types.MergePatchType, patch, nil)
			return err
		})
	}
	return group.Wait()
}
