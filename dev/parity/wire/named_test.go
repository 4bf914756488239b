package wire_test

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
)

// namedCases are the calls for which anykind has a verb and client-go's dynamic client a subresource.
func namedCases() map[string]wireCase {
	evicting := func(opts *dynamic.EvictOptions, deleting map[string]any) wireCase {
		return wireCase{"pods",
			func(ctx context.Context, r *dynamic.Resource) error { return r.Evict(ctx, "web", opts) },
			func(ctx context.Context, r theirHandle) error {
				eviction := wireObject("policy/v1", "Eviction", "web")
				if deleting != nil {
					eviction.Object["deleteOptions"] = deleting
				}
				_, err := r.Create(ctx, eviction, metav1.CreateOptions{}, "eviction")
				return err
			}}
	}
	withOptions := func(opts *dynamic.TokenOptions, spec map[string]any) wireCase {
		return wireCase{"serviceaccounts",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.CreateToken(ctx, "web", opts)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				request := wireObject("authentication.k8s.io/v1", "TokenRequest", "web")
				request.Object["spec"] = spec
				_, err := r.Create(ctx, request, metav1.CreateOptions{}, "token")
				return err
			}}
	}
	grace := int64(5)
	pod := wireObject("v1", "Pod", "web-0")
	pod.SetUID("u-7")
	return map[string]wireCase{
		"Evict": evicting(nil, nil),
		"Evict, with options": evicting(&dynamic.EvictOptions{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &grace}},
			map[string]any{"gracePeriodSeconds": grace}),
		"CreateToken": withOptions(nil, map[string]any{}),
		"CreateToken, with options": withOptions(&dynamic.TokenOptions{Audiences: []string{"api"}, Duration: 10 * time.Minute, BoundObject: pod}, map[string]any{
			"audiences": []any{"api"}, "expirationSeconds": int64(600),
			"boundObjectRef": map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "u-7"},
		}),
		"Scale": {"deployments",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Scale(ctx, "web", 3, &metav1.PatchOptions{FieldManager: "me"})
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{FieldManager: "me"}, "scale")
				return err
			}},
	}
}
