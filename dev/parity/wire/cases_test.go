package wire_test

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// wireCases returns all calls, by name.
func wireCases() map[string]wireCase {
	all := map[string]wireCase{}
	for _, some := range []map[string]wireCase{readCases(), writeCases(), patchCases(), deleteCases(), collectionCases(), subresourceCases(), metadataCases(), tableCases(), namedCases(), handleCases()} {
		maps.Copy(all, some)
	}
	return all
}

// exhaust reads an iterator to its end.
func exhaust[T any](all func(func(T, error) bool)) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// drainWatch reads a watch of client-go to its end.
func drainWatch(stream watch.Interface, err error) error {
	if err == nil {
		for range stream.ResultChan() {
			continue
		}
	}
	return err
}

func readCases() map[string]wireCase {
	getting := func(resource, name string, opts metav1.GetOptions) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error { _, err := r.Get(ctx, name, &opts); return err },
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Get(ctx, name, opts)
				return err
			},
		}
	}
	listing := func(resource string, opts metav1.ListOptions) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error { _, err := r.ListPage(ctx, &opts); return err },
			func(ctx context.Context, r theirHandle) error {
				_, err := r.List(ctx, opts)
				return err
			},
		}
	}
	watching := func(resource string, opts metav1.ListOptions) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error { return exhaust(r.Watch(ctx, &opts)) },
			func(ctx context.Context, r theirHandle) error { return drainWatch(r.Watch(ctx, opts)) },
		}
	}
	return map[string]wireCase{
		"get":                        getting("pods", "web", metav1.GetOptions{}),
		"get of a group":             getting("deployments", "web", metav1.GetOptions{}),
		"get, cluster-scoped":        getting("nodes", "n1", metav1.GetOptions{}),
		"get, all options":           getting("pods", "web", allGetOptions()),
		"get a name with characters": getting("nodes", "system:a b?c+d&e=é", metav1.GetOptions{}),
		"list":                       listing("pods", metav1.ListOptions{}),
		"list, cluster-scoped":       listing("nodes", metav1.ListOptions{}),
		"list, all options":          listing("deployments", allListOptions()),
		"list, a further page":       listing("pods", furtherPage()),
		"list by iterator": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error { return exhaust(r.List(ctx, nil)) },
			func(ctx context.Context, r theirHandle) error {
				_, err := r.List(ctx, metav1.ListOptions{})
				return err
			}},
		"list by iterator, all options": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				opts := allListOptions()
				return exhaust(r.List(ctx, &opts))
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.List(ctx, allListOptions())
				return err
			}},
		"watch":                 watching("pods", metav1.ListOptions{}),
		"watch, cluster-scoped": watching("nodes", metav1.ListOptions{}),
		"watch, all options":    watching("pods", allWatchOptions()),
		"watch from the start":  watching("deployments", metav1.ListOptions{ResourceVersion: "0"}),
	}
}

func writeCases() map[string]wireCase {
	creating := func(resource string, obj *unstructured.Object, opts metav1.CreateOptions) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error { _, err := r.Create(ctx, obj, &opts); return err },
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Create(ctx, obj, opts)
				return err
			},
		}
	}
	updating := func(resource string, obj *unstructured.Object, opts metav1.UpdateOptions) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error { _, err := r.Update(ctx, obj, &opts); return err },
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Update(ctx, obj, opts)
				return err
			},
		}
	}
	generated := wireObject("v1", "Pod", "")
	generated.Object["metadata"] = map[string]any{"generateName": "web-"}
	namespaced := wirePod()
	namespaced.SetNamespace("shop")
	return map[string]wireCase{
		"create":                 creating("pods", wirePod(), metav1.CreateOptions{}),
		"create, generateName":   creating("pods", generated, metav1.CreateOptions{}),
		"create, with namespace": creating("pods", namespaced, metav1.CreateOptions{}),
		"create, cluster-scoped": creating("nodes", wireObject("v1", "Node", "n1"), metav1.CreateOptions{}),
		"create, all options":    creating("deployments", wireObject("apps/v1", "Deployment", "web"), allCreateOptions()),
		"create without kind":    creating("pods", &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}, metav1.CreateOptions{}),
		"update":                 updating("pods", wirePod(), metav1.UpdateOptions{}),
		"update, cluster-scoped": updating("nodes", wireObject("v1", "Node", "n1"), metav1.UpdateOptions{}),
		"update, all options":    updating("pods", namespaced, allUpdateOptions()),
		"update the status": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Subresource("status").Update(ctx, wirePod(), &metav1.UpdateOptions{FieldManager: "me"})
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.UpdateStatus(ctx, wirePod(), metav1.UpdateOptions{FieldManager: "me"})
				return err
			}},
	}
}

func patchCases() map[string]wireCase {
	patching := func(kind types.PatchType, patch string, opts metav1.PatchOptions, subs ...string) wireCase {
		return wireCase{"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				for _, sub := range subs {
					r = r.Subresource(sub)
				}
				_, err := r.Patch(ctx, "web", kind, []byte(patch), &opts)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Patch(ctx, "web", kind, []byte(patch), opts, subs...)
				return err
			}}
	}
	applying := func(opts metav1.ApplyOptions) wireCase {
		return wireCase{"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Apply(ctx, wirePod(), &opts)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Apply(ctx, "web", wirePod(), opts)
				return err
			}}
	}
	return map[string]wireCase{
		"patch, JSON":        patching(types.JSONPatchType, `[{"op":"remove","path":"/metadata/labels"}]`, metav1.PatchOptions{}),
		"patch, merge":       patching(types.MergePatchType, `{"metadata":{"labels":null}}`, metav1.PatchOptions{}),
		"patch, strategic":   patching(types.StrategicMergePatchType, `{"spec":{"$retainKeys":["a"]}}`, metav1.PatchOptions{}),
		"patch, apply":       patching(types.ApplyYAMLPatchType, `{"apiVersion":"v1","kind":"Pod"}`, allPatchOptions()),
		"patch, all options": patching(types.MergePatchType, `{}`, allPatchOptions()),
		"patch the status":   patching(types.MergePatchType, `{"status":{}}`, metav1.PatchOptions{FieldManager: "me"}, "status"),
		"apply":              applying(metav1.ApplyOptions{FieldManager: "me"}),
		"apply, all options": applying(allApplyOptions()),
		"apply the status": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Subresource("status").Apply(ctx, wirePod(), &metav1.ApplyOptions{FieldManager: "me", Force: true})
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.ApplyStatus(ctx, "web", wirePod(), metav1.ApplyOptions{FieldManager: "me", Force: true})
				return err
			}},
	}
}

func deleteCases() map[string]wireCase {
	deleting := func(resource, name string, opts metav1.DeleteOptions) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error { _, err := r.Delete(ctx, name, &opts); return err },
			func(ctx context.Context, r theirHandle) error { return r.Delete(ctx, name, opts) },
		}
	}
	grace := int64(30)
	orphan := metav1.DeletePropagationOrphan
	version := "7"
	return map[string]wireCase{
		"delete": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error { _, err := r.Delete(ctx, "web", nil); return err },
			func(ctx context.Context, r theirHandle) error {
				return r.Delete(ctx, "web", metav1.DeleteOptions{})
			}},
		"delete, no options set":        deleting("pods", "web", metav1.DeleteOptions{}),
		"delete, cluster-scoped":        deleting("nodes", "n1", metav1.DeleteOptions{GracePeriodSeconds: &grace}),
		"delete, propagation":           deleting("deployments", "web", metav1.DeleteOptions{PropagationPolicy: &orphan}),
		"delete, preconditions":         deleting("pods", "web", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}),
		"delete, the old way to orphan": deleting("deployments", "web", orphaningAsOfOld()),
		"delete, all options":           deleting("pods", "web", allDeleteOptions()),
	}
}

func collectionCases() map[string]wireCase {
	deleting := func(resource string, opts metav1.DeleteOptions, selected metav1.ListOptions) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.DeleteCollection(ctx, &opts, &selected)
				return err
			},
			func(ctx context.Context, r theirHandle) error { return r.DeleteCollection(ctx, opts, selected) },
		}
	}
	return map[string]wireCase{
		"delete a collection": {"pods",
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.DeleteCollection(ctx, nil, nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				return r.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			}},
		"delete a collection, cluster-scoped": deleting("nodes", metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "old"}),
		"delete a collection, all options":    deleting("pods", allDeleteOptions(), allListOptions()),
	}
}

func subresourceCases() map[string]wireCase {
	getting := func(resource, sub string) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Subresource(sub).Get(ctx, "web", nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Get(ctx, "web", metav1.GetOptions{}, sub)
				return err
			}}
	}
	creating := func(resource, sub string, obj *unstructured.Object) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Subresource(sub).Create(ctx, obj, nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Create(ctx, obj, metav1.CreateOptions{}, sub)
				return err
			}}
	}
	updating := func(resource, sub string, obj *unstructured.Object) wireCase {
		return wireCase{resource,
			func(ctx context.Context, r *dynamic.Resource) error {
				_, err := r.Subresource(sub).Update(ctx, obj, nil)
				return err
			},
			func(ctx context.Context, r theirHandle) error {
				_, err := r.Update(ctx, obj, metav1.UpdateOptions{}, sub)
				return err
			}}
	}
	scale := wireObject("autoscaling/v1", "Scale", "web")
	scale.Object["spec"] = map[string]any{"replicas": int64(3)}
	eviction := wireObject("policy/v1", "Eviction", "web")
	eviction.Object["deleteOptions"] = map[string]any{"gracePeriodSeconds": int64(5)}
	token := wireObject("authentication.k8s.io/v1", "TokenRequest", "web")
	token.Object["spec"] = map[string]any{"audiences": []any{"api"}, "expirationSeconds": int64(600)}
	binding := wireObject("v1", "Binding", "web")
	binding.Object["target"] = map[string]any{"kind": "Node", "name": "n1"}
	return map[string]wireCase{
		"get the status":              getting("pods", "status"),
		"get the scale":               getting("deployments", "scale"),
		"update the scale":            updating("deployments", "scale", scale),
		"update ephemeral containers": updating("pods", "ephemeralcontainers", wirePod()),
		"update the size":             updating("pods", "resize", wirePod()),
		"approve":                     updating("certificatesigningrequests", "approval", wireObject("certificates.k8s.io/v1", "CertificateSigningRequest", "web")),
		"finalize a namespace":        updating("namespaces", "finalize", wireObject("v1", "Namespace", "web")),
		"evict":                       creating("pods", "eviction", eviction),
		"bind":                        creating("pods", "binding", binding),
		"ask for a token":             creating("serviceaccounts", "token", token),
	}
}
