package clients_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	clientgofake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	runtimefake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// world is a server or a fake of one, behind client-go's or, if runtime is not nil, behind controller-runtime's client.
type world struct {
	clientGo  kubernetes.Interface
	dynamic   dynamic.Interface
	runtime   runtimeclient.WithWatch
	namespace string
}

func realWorld(t *testing.T, kubeconfig string) world {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	cfg.QPS = -1
	clientset, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	created, err := clientset.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fakes-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		assert.NoError(t, clientset.CoreV1().Namespaces().Delete(ctx, created.Name, metav1.DeleteOptions{}))
	})
	untyped, err := dynamic.NewForConfig(cfg)
	require.NoError(t, err)
	return world{clientGo: clientset, dynamic: untyped, namespace: created.Name}
}

// outcome returns the reason of an error, "error" for an error without a reason, or shown for none.
func outcome(err error, shown any) string {
	if err != nil {
		return cmp.Or(string(apierrors.ReasonForError(err)), "error")
	}
	return fmt.Sprint(shown)
}

// create sends an object and stores the response in it.
func (w world) create(ctx context.Context, obj runtimeclient.Object) error {
	if w.runtime != nil {
		return w.runtime.Create(ctx, obj)
	}
	var err error
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		var created *corev1.ConfigMap
		if created, err = w.clientGo.CoreV1().ConfigMaps(w.namespace).Create(ctx, obj.DeepCopy(), metav1.CreateOptions{}); err == nil {
			*obj = *created
		}
	case *appsv1.Deployment:
		var created *appsv1.Deployment
		if created, err = w.clientGo.AppsV1().Deployments(w.namespace).Create(ctx, obj.DeepCopy(), metav1.CreateOptions{}); err == nil {
			*obj = *created
		}
	}
	return err
}

func (w world) update(ctx context.Context, obj runtimeclient.Object) error {
	if w.runtime != nil {
		return w.runtime.Update(ctx, obj)
	}
	var err error
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		var updated *corev1.ConfigMap
		if updated, err = w.clientGo.CoreV1().ConfigMaps(w.namespace).Update(ctx, obj.DeepCopy(), metav1.UpdateOptions{}); err == nil {
			*obj = *updated
		}
	case *appsv1.Deployment:
		var updated *appsv1.Deployment
		if updated, err = w.clientGo.AppsV1().Deployments(w.namespace).Update(ctx, obj.DeepCopy(), metav1.UpdateOptions{}); err == nil {
			*obj = *updated
		}
	}
	return err
}

func (w world) remove(ctx context.Context, obj *corev1.ConfigMap) error {
	if w.runtime != nil {
		return w.runtime.Delete(ctx, obj)
	}
	return w.clientGo.CoreV1().ConfigMaps(w.namespace).Delete(ctx, obj.Name, metav1.DeleteOptions{})
}

func (w world) list(ctx context.Context, opts metav1.ListOptions) (*corev1.ConfigMapList, error) {
	if w.runtime == nil {
		return w.clientGo.CoreV1().ConfigMaps(w.namespace).List(ctx, opts)
	}
	found := &corev1.ConfigMapList{}
	return found, w.runtime.List(ctx, found, &runtimeclient.ListOptions{Namespace: w.namespace, Raw: &opts, Limit: opts.Limit})
}

func (w world) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if w.runtime == nil {
		return w.clientGo.CoreV1().ConfigMaps(w.namespace).Watch(ctx, opts)
	}
	return w.runtime.Watch(ctx, &corev1.ConfigMapList{}, &runtimeclient.ListOptions{Namespace: w.namespace, Raw: &opts})
}

func (w world) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace, Labels: map[string]string{"case": name}}}
}

// web is a deployment that a server accepts.
func (w world) web(name string) *appsv1.Deployment {
	obj := deployment()
	obj.Name = name
	obj.Namespace = w.namespace
	return obj
}

// firstEvent returns the type of the first event but for config maps that a cluster makes itself, or "none" after a while.
func firstEvent(ctx context.Context, w world, opts metav1.ListOptions, patience time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	events, err := w.watch(ctx, opts)
	if err != nil {
		return outcome(err, "")
	}
	defer events.Stop()
	select {
	case event := <-events.ResultChan():
		return string(event.Type)
	case <-ctx.Done():
		return "none"
	}
}

// lies returns the calls for which the results of a fake and a server differ.
func lies() []lie {
	return []lie{
		{"update with a stale resourceVersion", "Conflict", "stored", "Conflict", func(ctx context.Context, w world, _ time.Duration) string {
			obj := w.configMap("stale")
			if err := w.create(ctx, obj); err != nil {
				return err.Error()
			}
			stale := obj.DeepCopy()
			obj.Data = map[string]string{"a": "1"}
			stale.Data = map[string]string{"a": "2"}
			if err := w.update(ctx, obj); err != nil {
				return err.Error()
			}
			return outcome(w.update(ctx, stale), "stored")
		}},
		{"generateName", "named", "unnamed", "named", func(ctx context.Context, w world, _ time.Duration) string {
			obj := w.configMap("")
			obj.GenerateName = "generated-"
			obj.Labels = nil
			err := w.create(ctx, obj)
			return outcome(err, map[bool]string{true: "named", false: "unnamed"}[len(obj.Name) > len(obj.GenerateName)])
		}},
		{"uid and creationTimestamp of a new object", "true true", "false false", "false false", func(ctx context.Context, w world, _ time.Duration) string {
			obj := w.configMap("identity")
			err := w.create(ctx, obj)
			return outcome(err, fmt.Sprint(obj.UID != "", " ", !obj.CreationTimestamp.IsZero()))
		}},
		{"generation after a change of the spec", "2", "0", "0", func(ctx context.Context, w world, _ time.Duration) string {
			obj := w.web("generation")
			if err := w.create(ctx, obj); err != nil {
				return err.Error()
			}
			obj.Spec.Paused = true
			err := w.update(ctx, obj)
			return outcome(err, obj.Generation)
		}},
		{"defaults", "10", "unset", "unset", func(ctx context.Context, w world, _ time.Duration) string {
			obj := w.web("defaults")
			obj.Spec.RevisionHistoryLimit = nil
			err := w.create(ctx, obj)
			if limit := obj.Spec.RevisionHistoryLimit; limit != nil {
				return outcome(err, *limit)
			}
			return outcome(err, "unset")
		}},
		{"an invalid object", "Invalid", "stored", "stored", func(ctx context.Context, w world, _ time.Duration) string {
			obj := w.web("invalid")
			obj.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"other": "label"}}
			return outcome(w.create(ctx, obj), "stored")
		}},
		{"status of a new object", "dropped", "stored", "stored", func(ctx context.Context, w world, _ time.Duration) string {
			obj := w.web("status")
			obj.Status.Replicas = 3
			err := w.create(ctx, obj)
			return outcome(err, map[bool]string{true: "stored", false: "dropped"}[obj.Status.Replicas == 3])
		}},
		{"deletion of an object with a finalizer", "kept", "gone", "kept", func(ctx context.Context, w world, _ time.Duration) string {
			obj := w.configMap("finalized")
			obj.Finalizers = []string{"example.com/a"}
			if err := w.create(ctx, obj); err != nil {
				return err.Error()
			}
			if err := w.remove(ctx, obj); err != nil {
				return err.Error()
			}
			found, err := w.list(ctx, metav1.ListOptions{LabelSelector: "case=finalized"})
			if err == nil && len(found.Items) == 1 { // so that the namespace can be removed
				found.Items[0].Finalizers = nil
				err = w.update(ctx, &found.Items[0])
				return outcome(err, "kept")
			}
			return outcome(err, "gone")
		}},
		{"a list with a limit", "1 continued", "all", "all", func(ctx context.Context, w world, _ time.Duration) string {
			for _, name := range []string{"page-1", "page-2"} {
				obj := w.configMap(name)
				obj.Labels = map[string]string{"case": "page"}
				if err := w.create(ctx, obj); err != nil {
					return err.Error()
				}
			}
			found, err := w.list(ctx, metav1.ListOptions{LabelSelector: "case=page", Limit: 1})
			if err == nil && len(found.Items) == 1 && found.Continue != "" {
				return "1 continued"
			}
			return outcome(err, "all")
		}},
		// Kubernetes' issue 141528.
		{"a watch from a list, of an object deleted since", "DELETED", "none", "none", func(ctx context.Context, w world, patience time.Duration) string {
			obj := w.configMap("missed")
			if err := w.create(ctx, obj); err != nil {
				return err.Error()
			}
			found, err := w.list(ctx, metav1.ListOptions{LabelSelector: "case=missed"})
			if err != nil {
				return err.Error()
			}
			if err := w.remove(ctx, obj); err != nil {
				return err.Error()
			}
			return firstEvent(ctx, w, metav1.ListOptions{LabelSelector: "case=missed", ResourceVersion: found.ResourceVersion}, patience)
		}},
		// Kubernetes' issue 131320: a test that creates an object while an informer starts.
		{"a watch from a list, of an object created since", "ADDED", "ADDED", "none", func(ctx context.Context, w world, patience time.Duration) string {
			found, err := w.list(ctx, metav1.ListOptions{LabelSelector: "case=new"})
			if err != nil {
				return err.Error()
			}
			if err := w.create(ctx, w.configMap("new")); err != nil {
				return err.Error()
			}
			return firstEvent(ctx, w, metav1.ListOptions{LabelSelector: "case=new", ResourceVersion: found.ResourceVersion}, patience)
		}},
		{"a bookmark after the initial events of a watch", "BOOKMARK", "none", "none", func(ctx context.Context, w world, patience time.Duration) string {
			initial := true
			return firstEvent(ctx, w, metav1.ListOptions{
				LabelSelector: "case=nothing", SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			}, patience)
		}},
	}
}

type lie struct {
	name                                  string
	want, byClientGo, byControllerRuntime string
	ask                                   func(ctx context.Context, w world, patience time.Duration) string
}

func TestFakes_LiesAreNoneOfApitest(t *testing.T) {
	sandbox := realWorld(t, cluster.Kubeconfig(t))
	double := realWorld(t, apitest.NewServer(t, nil).Kubeconfig(t))
	for _, lie := range append(lies(), applyLies()...) {
		t.Run(lie.name, func(t *testing.T) {
			for name, w := range map[string]world{"real": sandbox, "apitest": double} {
				assert.Equal(t, lie.want, lie.ask(t.Context(), w, time.Minute), name)
			}
			fake := world{clientGo: clientgofake.NewClientset(), dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), namespace: "default"}
			assert.Equal(t, lie.byClientGo, lie.ask(t.Context(), fake, 100*time.Millisecond), "client-go's fake")
			fake = world{runtime: runtimefake.NewClientBuilder().Build(), namespace: "default"}
			assert.Equal(t, lie.byControllerRuntime, lie.ask(t.Context(), fake, 100*time.Millisecond), "controller-runtime's fake")
		})
	}
}
