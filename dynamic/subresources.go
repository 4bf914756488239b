package dynamic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/unstructured"
)

// Scale sets the number of replicas of an object through the subresource scale. Deployments and custom kinds may have it. It
// returns the stored Scale: spec.replicas is the requested number, status.replicas the current number. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#scale-subresource.
func (e *endpoint) Scale(ctx context.Context, name string, replicas int64, opts *metav1.PatchOptions) (*unstructured.Object, error) {
	patch := `{"spec":{"replicas":` + strconv.FormatInt(replicas, 10) + `}}`
	return e.withSubresource("scale").withRepresentation(representation{}).objects().Patch(ctx, name, types.MergePatchType, []byte(patch), opts)
}

// EvictOptions are options of Evict.
type EvictOptions struct {
	// DeleteOptions are the options of the deletion: grace period, preconditions, dry run.
	DeleteOptions *metav1.DeleteOptions
	// Retry retries with backoff, at most five seconds apart, while a disruption budget does not allow the eviction.
	Retry bool
}

// Evict deletes a pod if its disruption budgets allow it now. Otherwise it returns a [*DisruptionBudgetError]. With Retry it
// tries again until ctx ends, and then returns an error that wraps both ctx's and the last DisruptionBudgetError. After a
// successful eviction the pod may still exist for its grace period. If the pod does not exist, apierrors.IsNotFound holds for
// the error. A resource without the subresource eviction is an [*InvalidRequestError], and apierrors.IsNotFound holds, too. See
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/.
func (e *endpoint) Evict(ctx context.Context, name string, opts *EvictOptions) error {
	evictions := e.withSubresource("eviction").withRepresentation(representation{})
	options := valueOf(opts)
	var query metav1.CreateOptions
	deleteOptions := e.defaults.deleteOptions(options.DeleteOptions)
	if deleteOptions != nil {
		query.DryRun = deleteOptions.DryRun // for admission; the eviction itself reads the body
	}
	request, err := evictions.objectRequest("create", name, queryOf(&query))
	if err != nil {
		return err
	}
	setBody(request, jsonType, evictions.encodeEviction(name, deleteOptions))
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second} // Max is the interval of kubectl drain
	var budget *DisruptionBudgetError
	for attempt := 1; ; attempt++ {
		err := evictions.doAndDecode(ctx, request, func(http.Header, []byte) error { return nil })
		if err == nil || !options.Retry {
			return err
		}
		if errors.As(err, &budget) {
			if err = backoff.Wait(ctx, attempt); err == nil {
				continue
			}
		}
		if budget == nil || ctx.Err() == nil {
			return err
		}
		return fmt.Errorf("evict %s %q: %w; the last attempt: %w", e, name, err, budget)
	}
}

// encodeEviction encodes an Eviction in the served version of group policy.
func (e *endpoint) encodeEviction(name string, opts *metav1.DeleteOptions) []byte {
	var eviction struct {
		metav1.TypeMeta
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		DeleteOptions *metav1.DeleteOptions `json:"deleteOptions,omitempty"`
	}
	eviction.Metadata.Name = name
	eviction.DeleteOptions = opts
	if sub, ok := e.apiResource.Subresource(e.subresource); ok {
		eviction.APIVersion, eviction.Kind = sub.GVK.ToAPIVersionAndKind()
	}
	body, _ := json.Marshal(eviction) // cannot fail: only strings, numbers and bools
	return body
}

// Token is a bearer token of a service account. Package fmt and loggers never print its secret.
type Token struct {
	// Token is the secret.
	Token string
	// ExpiresAt is the time at which the token becomes invalid.
	ExpiresAt time.Time
}

// String returns the expiry time, without the secret.
func (t Token) String() string {
	return "token that expires at " + t.ExpiresAt.UTC().Format(time.RFC3339)
}

// Format implements fmt.Formatter without the secret.
func (t Token) Format(state fmt.State, _ rune) { sanitize.Format(state, t) }

// LogValue implements slog.LogValuer without the secret.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// TokenOptions are options of CreateToken.
type TokenOptions struct {
	// Audiences are the intended audiences of the token. Without any, the audience is the API server.
	Audiences []string
	// Duration is the requested lifetime, at least ten minutes. 0 means the server's default, an hour. The server may choose a
	// different lifetime.
	Duration time.Duration
	// BoundObject is a Pod, Secret or Node as read from the server. The token becomes invalid with the object. It may be nil.
	BoundObject *unstructured.Object
}

// CreateToken issues a token of a service account, through the subresource token. See
// https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-request-v1/.
func (e *endpoint) CreateToken(ctx context.Context, name string, opts *TokenOptions) (*Token, error) {
	e = e.withSubresource("token").withRepresentation(representation{})
	request, err := e.objectRequest("create", name, nil)
	if err != nil {
		return nil, err
	}
	body, _ := unstructured.Encode(e.withKind(tokenRequest(valueOf(opts)))) // cannot fail: only strings and numbers
	setBody(request, jsonType, body)
	var token *Token
	err = e.doAndDecode(ctx, request, func(_ http.Header, body []byte) error {
		token, err = decodeToken(body)
		return err
	})
	return token, err
}

func tokenRequest(opts TokenOptions) *unstructured.Object {
	spec := map[string]any{}
	if len(opts.Audiences) > 0 {
		spec["audiences"] = opts.Audiences
	}
	if opts.Duration != 0 {
		spec["expirationSeconds"] = int64(opts.Duration / time.Second)
	}
	if bound := opts.BoundObject; bound != nil {
		spec["boundObjectRef"] = map[string]any{
			"apiVersion": bound.GetAPIVersion(), "kind": bound.GetKind(), "name": bound.GetName(), "uid": bound.GetUID(),
		}
	}
	return &unstructured.Object{Object: map[string]any{"spec": spec}}
}

func decodeToken(body []byte) (*Token, error) {
	var response struct {
		Status struct {
			Token               string    `json:"token"`
			ExpirationTimestamp time.Time `json:"expirationTimestamp"`
		} `json:"status"`
	}
	// The decoder's error could quote the secret.
	if json.Unmarshal(body, &response) != nil || response.Status.Token == "" {
		return nil, errors.New("the response has no token")
	}
	return &Token{Token: response.Status.Token, ExpiresAt: response.Status.ExpirationTimestamp}, nil
}
