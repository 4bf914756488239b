package storagemigration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// maxAttempts bounds the attempts at an object, about two seconds with backoff.
const maxAttempts = 5

var backoff = retry.Backoff{Min: 100 * time.Millisecond, Max: time.Second}

// rewriter patches the objects of a definition.
type rewriter struct {
	*migration

	definition *definition
	// rewritesAll is not set if objects without outdated entries of managedFields need no patch.
	rewritesAll bool
	// stop ends the pass, because the server does not respond.
	stop context.CancelCauseFunc

	rewritten, managedFields atomic.Int64
}

// patchObjects moves outdated entries of managedFields, and with all patches every object.
func (m *migration) patchObjects(ctx context.Context, def *definition, all bool) error {
	if len(def.served()) == 0 && !all {
		return nil // no client reads or writes the objects
	}
	objects, err := def.objects(m.client)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &rewriter{migration: m, definition: def, rewritesAll: all, stop: stop}
	err = objects.ForEach(ctx, nil, &dynamic.ForEachOptions{Workers: m.opts.Workers, OnProgress: func(p dynamic.ForEachProgress) {
		m.result.Objects = p.Done
		m.result.Failed = p.Failed
		if m.opts.OnProgress != nil {
			m.opts.OnProgress(p)
		}
	}}, r.object)
	m.result.Rewritten += int(r.rewritten.Load())
	m.result.ManagedFields += int(r.managedFields.Load())
	return err
}

// object rewrites an object. A conflict is retried, too: an API server that lags may have stored the object in the previous version.
func (r *rewriter) object(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
	for n := 1; ; n++ {
		err := r.patch(ctx, in, obj)
		switch {
		case err == nil || retry.IsObjectNotFound(err): // deleted
			return nil
		case ctx.Err() != nil:
			return retry.WithContextError(ctx, err)
		case retry.IsTerminal(err) && !retry.IsConflict(err):
			return err
		case n == maxAttempts:
			return r.exhausted(err)
		}
		if ended := backoff.Wait(ctx, n); ended != nil {
			return fmt.Errorf("%w; the last error: %w", ended, err)
		}
		if !retry.IsConflict(err) {
			continue
		}
		if current, err := in.Get(ctx, obj.GetName(), nil); err == nil {
			obj = current
		}
	}
}

// exhausted returns the error of the last attempt. Without a response it stops the pass.
func (r *rewriter) exhausted(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		r.stop(fmt.Errorf("the server does not respond: %w", err))
	}
	return err
}

// patch sends the patch for obj, whose metadata was just read. An object that needs no patch costs no request.
func (r *rewriter) patch(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
	entries, isMoved, err := r.definition.moveEntries(obj)
	if err != nil {
		return err
	}
	patch := []byte("{}")
	if isMoved {
		if patch, err = json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": obj.GetResourceVersion(), "managedFields": entries,
		}}); err != nil {
			return err
		}
	} else if !r.rewritesAll {
		return nil
	}
	if err := retry.Sleep(ctx, r.bucket.Reserve(1)); err != nil {
		return err
	}
	options := &metav1.PatchOptions{}
	if r.opts.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	stored, err := in.Patch(ctx, obj.GetName(), types.MergePatchType, patch, options)
	if err != nil {
		return err
	}
	if isMoved {
		r.managedFields.Add(1)
	}
	if !r.opts.DryRun && stored.GetResourceVersion() != obj.GetResourceVersion() {
		r.rewritten.Add(1)
	}
	return nil
}
