package controllerruntime

import (
	"context"
	"encoding/json"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// side is one of the two implementations that a test compares, with a namespace of its own.
type side struct {
	name      string
	namespace string
	config    *rest.Config
	newClient func(*rest.Config, ctrlclient.Options) (ctrlclient.WithWatch, error)
	from      *Constructors // nil for controller-runtime's own
}

// sides returns anykind's and controller-runtime's.
func sides(t *testing.T) (ours, theirs *side) {
	t.Helper()
	admin := client.Connect(t, "admin")
	from := New(t.Context(), admin)
	ours = &side{name: "ours", namespace: client.NewNamespace(t, admin), config: adminConfig(t), newClient: from.NewClientWithWatch, from: from}
	theirs = &side{name: "theirs", namespace: client.NewNamespace(t, admin), config: adminConfig(t), newClient: ctrlclient.NewWithWatch}
	return ours, theirs
}

func adminConfig(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: cluster.Kubeconfig(t)}, &clientcmd.ConfigOverrides{CurrentContext: "admin"},
	).ClientConfig()
	require.NoError(t, err)
	config.QPS = -1
	config.UserAgent = "anykind/test" // its beginning is the default field manager
	var mu sync.Mutex
	var conns []net.Conn
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
		}
		return conn, err
	}
	t.Cleanup(func() { // client-go keeps its connections
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
	return config
}

// client returns a client of the side.
func (s *side) client(t *testing.T, options ctrlclient.Options) ctrlclient.WithWatch {
	t.Helper()
	c, err := s.newClient(s.config, options)
	require.NoError(t, err)
	return c
}

func (s *side) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{"app": name}},
		Data:       map[string]string{"k": "v"},
	}
}

func untyped(gvk schema.GroupVersionKind, namespace, name string) *unstructuredv1.Unstructured {
	obj := &unstructuredv1.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func metadataOf(gvk schema.GroupVersionKind, namespace, name string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	obj.SetGroupVersionKind(gvk)
	return obj
}

var (
	configMaps  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	variable    = regexp.MustCompile(`"(uid|resourceVersion|creationTimestamp|time|continue|selfLink|remainingItemCount)":("[^"]*"|\d+),?`)
	times       = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	versions    = regexp.MustCompile(`\b\d{2,}\b`)
	identifiers = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// outcome is the result of a call without what differs between two namespaces and two moments.
func (s *side) outcome(t *testing.T, obj any, err error) string {
	t.Helper()
	text := ""
	if list, ok := obj.(ctrlclient.ObjectList); ok {
		obj = list.DeepCopyObject()
		_ = meta.EachListItem(obj.(runtime.Object), func(item runtime.Object) error { clearManaged(item); return nil })
	} else if single, ok := obj.(ctrlclient.Object); ok {
		copied := single.DeepCopyObject()
		clearManaged(copied)
		obj = copied
	}
	if obj != nil {
		data, marshalErr := json.Marshal(obj)
		require.NoError(t, marshalErr)
		text = variable.ReplaceAllString(string(data), "")
		text = strings.ReplaceAll(text, `"items":[]`, `"items":null`) // Protobuf does not tell them apart
	}
	if err != nil {
		text += "\nerror: " + strings.TrimSpace(err.Error())
	}
	text = times.ReplaceAllString(identifiers.ReplaceAllString(text, "UID"), "TIME")
	return versions.ReplaceAllString(strings.ReplaceAll(text, s.namespace, "NAMESPACE"), "VERSION")
}

// clearManaged keeps of the managed fields their managers only.
func clearManaged(obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range accessor.GetManagedFields() {
		kept = append(kept, metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, Subresource: entry.Subresource})
	}
	accessor.SetManagedFields(kept)
}

// step is one call of a client.
type step struct {
	name string
	run  func(ctx context.Context, s *side, c ctrlclient.WithWatch) (any, error)
}

type toolsReflector = toolscache.Reflector

// connectLimited returns a client of a user without rights on secrets.
func connectLimited(t *testing.T) *dynamic.Client {
	t.Helper()
	return client.Connect(t, "limited")
}
