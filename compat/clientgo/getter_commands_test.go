package clientgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	clientgodynamic "k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// command makes the calls of a command of kubectl with a getter and returns what kubectl would print.
type command struct {
	name string
	run  func(ctx context.Context, getter genericclioptions.RESTClientGetter) (any, error)
}

// Manifests. HOME is a namespace of the test, and the value of a label: other tests may leave objects in terminating namespaces.
const (
	manifestAlone = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, labels: {of: HOME}}\ndata: {k: \"1\"}\n"
	manifestHome  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h, namespace: HOME, labels: {of: HOME}}\ndata: {k: \"1\"}\n"
	deployment    = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {of: HOME}}
spec:
  replicas: 0
  selector: {matchLabels: {app: d}}
  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: d, image: d}]}}
`
)

// commands are those of kubectl that a getter can change. Their order matters: later ones use and remove what earlier ones create.
func commands(home string) []command {
	alone := strings.ReplaceAll(manifestAlone, "HOME", home)
	inHome := strings.ReplaceAll(manifestHome, "HOME", home)
	labelled := "of=" + home
	return []command{
		{"config view", viewConfig},
		{"version", func(_ context.Context, g genericclioptions.RESTClientGetter) (any, error) {
			d, err := g.ToDiscoveryClient()
			return orNil(err, func() (any, error) { return d.ServerVersion() })
		}},
		{"api-versions", apiVersions}, {"api-resources", apiResources}, {"explain", explain},
		{"auth whoami", review("authentication.k8s.io", "selfsubjectreviews", `{}`)},
		{"auth can-i", review("authorization.k8s.io", "selfsubjectaccessreviews",
			`{"spec":{"resourceAttributes":{"namespace":"NAMESPACE","verb":"create","resource":"configmaps"}}}`)},
		{"create -f", create(alone)}, {"create -f again", create(alone)},
		{"create -f in its namespace", create(inHome)}, {"create deployment", create(strings.ReplaceAll(deployment, "HOME", home))},
		{"apply", patchFile(alone, types.StrategicMergePatchType)}, {"apply --server-side", patchFile(alone, types.ApplyPatchType)},
		{"apply in its namespace", patchFile(inHome, types.StrategicMergePatchType)},
		{"apply --server-side in its namespace", patchFile(inHome, types.ApplyPatchType)},
		{"get name", get("cm", "m")}, {"get type/name", get("configmaps/m", "namespace/"+home)}, {"get missing", get("cm/missing")},
		{"get missing kind", get("nosuchkinds")}, {"get types", get("cm,deployments.apps")}, {"get -A", getAll(labelled, "configmaps")},
		{"get -l", list(labelled, "cm")}, {"get as a table", tables}, {"get --watch", watchOnce},
		{"get -f", getFile(alone)}, {"get -f in its namespace", getFile(inHome)},
		{"describe", describe}, {"label", patchName("cm/m", `{"metadata":{"labels":{"x":"y"}}}`)},
		{"annotate", patchName("cm/m", `{"metadata":{"annotations":{"x":"y"}}}`)}, {"patch", patchName("deployment/d", `{"spec":{"paused":true}}`)},
		{"patch a namespace", patchName("ns/"+home, `{"metadata":{"labels":{"getter":null}}}`)},
		{"replace", replace(alone)}, {"replace in its namespace", replace(inHome)}, {"scale", scaleDeployment},
		{"logs", raw("/api/v1/namespaces/NAMESPACE/pods/missing/log")}, {"get --raw", raw("/apis/apps/v1/namespaces/NAMESPACE/deployments/d")},
		{"delete -f", deleteFile(alone)}, {"delete -f in its namespace", deleteFile(inHome)},
		{"delete name", deleteNames("deployment", "d")}, {"delete missing", deleteNames("cm", "m")},
	}
}

func orNil(err error, call func() (any, error)) (any, error) {
	if err != nil {
		return nil, err
	}
	return call()
}

// viewConfig returns what getters know of kubeconfigs and flags, and the settings of the config that do not authenticate.
func viewConfig(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
	loader := getter.ToRawKubeConfigLoader()
	namespace, enforced, err := loader.Namespace()
	if err != nil {
		return nil, err
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, err
	}
	own := raw.DeepCopy()
	if err := clientcmdapi.RedactSecrets(own); err != nil {
		return nil, err
	}
	view, err := clientcmd.Write(*own)
	if err != nil {
		return nil, err
	}
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	return []any{namespace, enforced, string(view), server.String(), config.Timeout, config.UserAgent, config.ContentConfig}, err
}

func apiVersions(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
	d, err := getter.ToDiscoveryClient()
	return orNil(err, func() (any, error) {
		d.Invalidate()
		groups, err := d.ServerGroups()
		return orNil(err, func() (any, error) { return metav1.ExtractGroupVersions(groups), nil })
	})
}

func apiResources(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
	d, err := getter.ToDiscoveryClient()
	return orNil(err, func() (any, error) {
		lists, err := d.ServerPreferredResources()
		return sortedLists(lists), err
	})
}

func explain(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
	d, err := getter.ToDiscoveryClient()
	return orNil(err, func() (any, error) {
		paths, err := d.OpenAPIV3().Paths()
		return orNil(err, func() (any, error) {
			schema, err := paths["apis/apps/v1"].Schema("application/json")
			return len(schema), err
		})
	})
}

// review creates a review of the user.
func review(group, plural, body string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(ctx context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		namespace, client, err := dynamicOf(getter)
		if err != nil {
			return nil, err
		}
		obj := &unstructuredv1.Unstructured{}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(body, "NAMESPACE", namespace)), &obj.Object); err != nil {
			return nil, err
		}
		created, err := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}).Create(ctx, obj, metav1.CreateOptions{})
		return orNil(err, func() (any, error) { return outcomeOf(created, nil), nil })
	}
}

func dynamicOf(getter genericclioptions.RESTClientGetter) (namespace string, client clientgodynamic.Interface, err error) {
	if namespace, _, err = getter.ToRawKubeConfigLoader().Namespace(); err != nil {
		return "", nil, err
	}
	config, err := getter.ToRESTConfig()
	if err != nil {
		return "", nil, err
	}
	client, err = clientgodynamic.NewForConfig(config)
	return namespace, client, err
}

// builder returns a builder as kubectl's commands make it.
func builder(getter genericclioptions.RESTClientGetter) (*resource.Builder, error) {
	namespace, enforced, err := getter.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	b := resource.NewBuilder(getter).Unstructured().ContinueOnError().NamespaceParam(namespace).DefaultNamespace().Flatten()
	if enforced {
		b = b.RequireNamespace()
	}
	return b, nil
}

// each calls visit with the objects that the builder finds, and returns what it returns.
func each(getter genericclioptions.RESTClientGetter, configure func(*resource.Builder), visit func(*resource.Info, *resource.Helper) (any, error)) (any, error) {
	b, err := builder(getter)
	if err != nil {
		return nil, err
	}
	configure(b)
	var results []string
	err = b.Do().Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		result, err := visit(info, resource.NewHelper(info.Client, info.Mapping).WithFieldManager("getter"))
		results = append(results, fmt.Sprint(info.Namespace, " ", info.ObjectName(), " ", info.Mapping.Resource, " ", result, " ", err))
		return err
	})
	slices.Sort(results)
	return results, err
}

func file(manifest string) func(*resource.Builder) {
	return func(b *resource.Builder) { b.Stream(strings.NewReader(manifest), "file") }
}

func create(manifest string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		return each(getter, file(manifest), func(info *resource.Info, helper *resource.Helper) (any, error) {
			return stable(helper.Create(info.Namespace, true, info.Object))
		})
	}
}

// patchFile applies a manifest: with a patch of the object that is read before, or server-side.
func patchFile(manifest string, patchType types.PatchType) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		return each(getter, file(manifest), func(info *resource.Info, helper *resource.Helper) (any, error) {
			data, err := json.Marshal(info.Object)
			if err != nil {
				return nil, err
			}
			force := true
			options := &metav1.PatchOptions{}
			if patchType == types.ApplyPatchType {
				options.Force = &force
			} else if err := info.Get(); err != nil {
				return nil, err
			}
			return stable(helper.Patch(info.Namespace, info.Name, patchType, data, options))
		})
	}
}

func named(args ...string) func(*resource.Builder) {
	return func(b *resource.Builder) { b.ResourceTypeOrNameArgs(true, args...).Latest() }
}

func object(info *resource.Info, _ *resource.Helper) (any, error) { return stable(info.Object, nil) }

func get(args ...string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		return each(getter, named(args...), object)
	}
}

func getAll(labelled string, args ...string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		return each(getter, func(b *resource.Builder) {
			b.AllNamespaces(true).LabelSelectorParam(labelled).RequestChunksOf(1).ResourceTypeOrNameArgs(true, args...).Latest()
		}, object)
	}
}

func list(labelled string, args ...string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		return each(getter, func(b *resource.Builder) {
			b.LabelSelectorParam(labelled).RequestChunksOf(500).ResourceTypeOrNameArgs(true, args...).Latest()
		}, object)
	}
}

func getFile(manifest string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		return each(getter, func(b *resource.Builder) { file(manifest)(b); b.Latest() }, object)
	}
}

// tables requests a table, as kubectl get does.
func tables(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
	return each(getter, func(b *resource.Builder) {
		b.TransformRequests(func(r *rest.Request) {
			r.SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
		}).ResourceTypeOrNameArgs(true, "cm/m")
	}, func(info *resource.Info, _ *resource.Helper) (any, error) {
		return info.Object.GetObjectKind().GroupVersionKind(), nil
	})
}

// watchOnce watches an object until its first event.
func watchOnce(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
	return each(getter, named("cm/m"), func(info *resource.Info, helper *resource.Helper) (any, error) {
		w, err := helper.WatchSingle(info.Namespace, info.Name, "0")
		if err != nil {
			return nil, err
		}
		defer w.Stop()
		event := <-w.ResultChan()
		return event.Type == watch.Added, nil
	})
}

// describe reads an object and its events.
func describe(ctx context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
	return each(getter, named("cm/m"), func(info *resource.Info, _ *resource.Helper) (any, error) {
		_, client, err := dynamicOf(getter)
		if err != nil {
			return nil, err
		}
		events, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(info.Namespace).
			List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + info.Name, Limit: 500})
		return orNil(err, func() (any, error) { return len(events.Items), nil })
	})
}

func patchName(name, patch string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		return each(getter, named(name), func(info *resource.Info, helper *resource.Helper) (any, error) {
			return stable(helper.Patch(info.Namespace, info.Name, types.MergePatchType, []byte(patch), nil))
		})
	}
}

func replace(manifest string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		return each(getter, file(manifest), func(info *resource.Info, helper *resource.Helper) (any, error) {
			return stable(helper.Replace(info.Namespace, info.Name, true, info.Object))
		})
	}
}

// scaleDeployment scales as kubectl does, with client-go's scale client over the getter's parts.
func scaleDeployment(ctx context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
	namespace, _, err := getter.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	mapper, err := getter.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	discovery, err := getter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	scales, err := scale.NewForConfig(config, mapper, clientgodynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery))
	if err != nil {
		return nil, err
	}
	scaled, err := scales.Scales(namespace).Patch(ctx, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "d",
		types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	return orNil(err, func() (any, error) { return fmt.Sprint(scaled.Namespace, scaled.Name, scaled.Spec), nil })
}

func raw(path string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return func(ctx context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		namespace, _, err := getter.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return nil, err
		}
		config, err := getter.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		config.GroupVersion = &schema.GroupVersion{}
		config.NegotiatedSerializer = resource.UnstructuredPlusDefaultContentConfig().NegotiatedSerializer
		client, err := rest.RESTClientFor(config)
		if err != nil {
			return nil, err
		}
		content, err := client.Get().AbsPath(strings.ReplaceAll(path, "NAMESPACE", namespace)).DoRaw(ctx)
		return len(content) > 0, err
	}
}

func deleteFile(manifest string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return deleteEach(file(manifest))
}

func deleteNames(args ...string) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	return deleteEach(func(b *resource.Builder) { b.ResourceTypeOrNameArgs(false, args...).RequireObject(false) })
}

func deleteEach(configure func(*resource.Builder)) func(context.Context, genericclioptions.RESTClientGetter) (any, error) {
	background := metav1.DeletePropagationBackground
	return func(_ context.Context, getter genericclioptions.RESTClientGetter) (any, error) {
		return each(getter, configure, func(info *resource.Info, helper *resource.Helper) (any, error) {
			_, err := helper.DeleteWithOptions(info.Namespace, info.Name, &metav1.DeleteOptions{PropagationPolicy: &background})
			return "deleted", err
		})
	}
}

// stable returns an object without the fields that differ between two runs.
func stable(obj any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	annotations := maps.Clone(accessor.GetAnnotations())
	delete(annotations, "deployment.kubernetes.io/revision") // a controller adds it at some time
	return fmt.Sprint(accessor.GetNamespace(), accessor.GetName(), accessor.GetLabels(), annotations), nil
}
