package dynamic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/anykind/anykind/internal/retry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EvictOptions say how a pod is evicted.
type EvictOptions struct {
	// DeleteOptions are those of the deletion: its grace period, preconditions, dry run.
	DeleteOptions *metav1.DeleteOptions
	// Retry asks again, every few seconds, while a disruption budget does not allow the eviction.
	Retry bool
}

// evictBackoff is for pods whose disruption budget blocks them; its maximum is kubectl drain's interval.
func evictBackoff() retry.Backoff {
	return retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
}

// Evict asks the server to delete a pod if its disruption budgets allow that now. A budget that does not is a
// [*DisruptionError]; with Retry, Evict then goes on asking until ctx ends, and its error holds both ctx's and the last
// DisruptionError. That Evict succeeded does not say that the pod is gone: it has its grace period. A pod that was gone
// before is an error that apierrors.IsNotFound knows. Resources without the subresource eviction are refused, by a
// [*RefusedError] that IsNotFound knows, too. See
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/.
func (r *Resource) Evict(ctx context.Context, name string, opts *EvictOptions) error {
	evictions := r.Sub("eviction")
	path, err := evictions.objectPath("create", name)
	if err != nil {
		return err
	}
	if opts == nil {
		opts = &EvictOptions{}
	}
	body, err := evictions.eviction(name, opts.DeleteOptions)
	if err != nil {
		return err
	}
	var query url.Values
	if opts.DeleteOptions != nil {
		query = url.Values{"dryRun": opts.DeleteOptions.DryRun} // admission looks here, the eviction there
	}
	var blocked *DisruptionError
	for attempt := 1; ; attempt++ {
		_, err := r.exchange(ctx, http.MethodPost, path, query, jsonType, body)
		if err == nil || !opts.Retry {
			return err
		}
		if errors.As(err, &blocked) {
			if err = evictBackoff().Wait(ctx, attempt); err == nil {
				continue
			}
		}
		if blocked == nil || ctx.Err() == nil {
			return err
		}
		return fmt.Errorf("evict %s %q: %w; what blocked it: %w", r, name, err, blocked)
	}
}

// eviction is what is posted, in the version of policy that the server takes.
func (r *Resource) eviction(name string, opts *metav1.DeleteOptions) ([]byte, error) {
	var posted struct {
		metav1.TypeMeta
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		DeleteOptions *metav1.DeleteOptions `json:"deleteOptions,omitempty"`
	}
	posted.Metadata.Name, posted.DeleteOptions = name, opts
	if sub, ok := r.mapping.Subresource(r.sub); ok {
		posted.APIVersion, posted.Kind = sub.GVK.ToAPIVersionAndKind()
	}
	body, err := json.Marshal(posted)
	if err != nil {
		return nil, fmt.Errorf("evict %s %q: encode the options: %w", r, name, err)
	}
	return body, nil
}
