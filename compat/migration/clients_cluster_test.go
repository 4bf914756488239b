package migration

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgocache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// overConn has a connection with a counter of its attempts, and a namespace with the Deployment web.
type overConn struct {
	client    *dynamic.Client
	conn      *transport.Conn
	namespace string
	attempts  *atomic.Int64
}

// TestClientsOverConn_ShareConnection uses client-go's clients, informers, leader election and events over a connection.
func TestClientsOverConn_ShareConnection(t *testing.T) {
	o := overConn{attempts: new(atomic.Int64)}
	o.client = client.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.OnAttempt = func(context.Context, transport.Attempt) { o.attempts.Add(1) }
	})
	o.namespace = client.NewNamespace(t, o.client)
	web := client.Resource(t, o.client, "deployments").Namespace(o.namespace)
	o.conn = web.Conn()
	template := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}},
	}
	_, err := web.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec":     map[string]any{"replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "template": template},
	}}, nil)
	require.NoError(t, err)
	for name, use := range map[string]func(t *testing.T, o overConn){
		"clientset": useClientset, "informers": useInformers, "DynamicClient": useDynamicClient, "metadata": useMetadata,
		"scales": useScales, "lock": useLock, "events": useEvents,
	} {
		before := o.attempts.Load()
		t.Run(name, func(t *testing.T) { use(t, o) })
		assert.Greater(t, o.attempts.Load(), before, name)
	}
}

func useClientset(t *testing.T, o overConn) {
	clientset, err := clientsetOverConn(o.conn)
	require.NoError(t, err)
	web, err := clientset.AppsV1().Deployments(o.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "web", web.Name)
}

func useInformers(t *testing.T, o overConn) {
	factory, err := informersOverConn(o.conn)
	require.NoError(t, err)
	all := factory.Apps().V1().Deployments()
	all.Informer()
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	listed, err := all.Lister().Deployments(o.namespace).List(labels.Everything())
	require.NoError(t, err)
	assert.Len(t, listed, 1)
}

func useDynamicClient(t *testing.T, o overConn) {
	c, err := dynamicClientOverConn(o.conn)
	require.NoError(t, err)
	web, err := c.Resource(deployments).Namespace(o.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "web", web.GetName())
}

func useMetadata(t *testing.T, o overConn) {
	factory, err := metadataOverConn(o.conn)
	require.NoError(t, err)
	informer := factory.ForResource(deployments)
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	defer cancel()
	require.True(t, clientgocache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced))
	web, err := informer.Lister().ByNamespace(o.namespace).Get("web")
	require.NoError(t, err)
	assert.IsType(t, &metav1.PartialObjectMetadata{}, web)
}

func useScales(t *testing.T, o overConn) {
	scales, err := scalesOverConn(t.Context(), o.conn, o.client)
	require.NoError(t, err)
	found, err := scales.Scales(o.namespace).Get(t.Context(), deployments.GroupResource(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	found.Spec.Replicas = 3
	found.ResourceVersion = "" // the Deployment controller writes, too
	updated, err := scales.Scales(o.namespace).Update(t.Context(), deployments.GroupResource(), found, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, int32(3), updated.Spec.Replicas)
}

func useLock(t *testing.T, o overConn) {
	lock, err := lockOverConn(o.conn, o.namespace, "first")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	leads := false
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leads = true; cancel() },
			OnStoppedLeading: func() {},
		},
	})
	lease, err := client.Resource(t, o.client, "leases").Namespace(o.namespace).Get(t.Context(), "web", nil)
	require.NoError(t, err)
	holder, _, err := unstructured.Get[string](lease, "spec", "holderIdentity")
	require.NoError(t, err)
	assert.Empty(t, holder, "released")
	assert.True(t, leads)
}

func useEvents(t *testing.T, o overConn) {
	broadcaster, err := eventsOverConn(o.conn)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer broadcaster.Shutdown()
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(ctx))
	about := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: o.namespace, Name: "web"}
	recorder := broadcaster.NewRecorder(runtime.NewScheme(), "shop-operator")
	recorder.Eventf(about, nil, corev1.EventTypeNormal, "Opened", "Open", "the shop is open")
	recorded := client.Resource(t, o.client, "events.events.k8s.io").Namespace(o.namespace)
	var reason string
	for event, err := range recorded.Watch(t.Context(), nil) {
		require.NoError(t, err)
		reason, _, err = unstructured.Get[string](event.Object, "reason")
		require.NoError(t, err)
		if reason == "Opened" { // controllers of the cluster have events, too
			break
		}
	}
	assert.Equal(t, "Opened", reason)
}
