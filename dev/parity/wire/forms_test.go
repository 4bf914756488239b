package wire_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/dynamic"
)

// metadataCases request metadata only, with client-go's metadata client.
func metadataCases() map[string]wireCase {
	return map[string]wireCase{
		"get metadata": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Metadata().Get(ctx, "web", &metav1.GetOptions{ResourceVersion: "0"})
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.metadata.Get(ctx, "web", metav1.GetOptions{ResourceVersion: "0"})
				return err
			}},
		"list metadata": {"deployments",
			func(ctx context.Context, r *dynamic.Resource) error {
				opts := allListOptions()
				_, err := r.Metadata().ListPage(ctx, &opts)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.metadata.List(ctx, allListOptions())
				return err
			}},
		"watch metadata": {"nodes",
			func(ctx context.Context, r *dynamic.Resource) error {
				opts := allWatchOptions()
				return exhaust(r.Metadata().Watch(ctx, &opts))
			},
			func(ctx context.Context, r theirHandle) error {
				return drainWatch(r.metadata.Watch(ctx, allWatchOptions()))
			}},
		"patch metadata": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				opts := allPatchOptions()
				_, err := r.Metadata().Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{}}`), &opts)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.metadata.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{}}`), allPatchOptions())
				return err
			}},
		"delete, metadata": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				opts := allDeleteOptions()
				_, err := r.Metadata().Delete(ctx, "web", &opts)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				return r.metadata.Delete(ctx, "web", allDeleteOptions())
			}},
		"delete a collection, metadata": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				opts := allDeleteOptions()
				selected := allListOptions()
				_, err := r.Metadata().DeleteCollection(ctx, &opts, &selected)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				return r.metadata.DeleteCollection(ctx, allDeleteOptions(), allListOptions())
			}},
	}
}

// kubectlTables is the Accept header of kubectl get.
const kubectlTables = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

// tableCases request tables, as kubectl get does.
func tableCases() map[string]wireCase {
	withOptions := func(r theirHandle, path string) *rest.Request {
		return r.rest.Get().AbsPath(path).SetHeader("Accept", kubectlTables)
	}
	return map[string]wireCase{
		"get a table": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Tables("").Get(ctx, "web", nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				return withOptions(r, "/api/v1/namespaces/shop/pods/web").Do(ctx).Error()
			}},
		"list a table": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Tables(metav1.IncludeObject).ListPage(ctx, &metav1.ListOptions{Limit: 500, LabelSelector: "app=web"})
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				return withOptions(r, "/api/v1/namespaces/shop/pods").Param("includeObject", "Object").
					Param("labelSelector", "app=web").Param("limit", "500").Do(ctx).Error()
			}},
		"watch a table": {"nodes",
			func(ctx context.Context, r *dynamic.Resource) error {
				return exhaust(r.Tables(metav1.IncludeNone).Watch(ctx, &metav1.ListOptions{ResourceVersion: "7"}))
			},
			func(ctx context.Context, r theirHandle) error {
				return withOptions(r, "/api/v1/nodes").Param("includeObject", "None").Param("resourceVersion", "7").Param("watch", "true").Do(ctx).Error()
			}},
	}
}
