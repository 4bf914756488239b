package clients_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"

	"github.com/anykind/anykind/apitest"
)

func config(t *testing.T, server *apitest.Server) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig(t))
	require.NoError(t, err)
	cfg.QPS = -1
	return cfg
}

func client(t *testing.T, server *apitest.Server, contentType string) *kubernetes.Clientset {
	t.Helper()
	cfg := config(t, server)
	cfg.ContentType = contentType
	cfg.AcceptContentTypes = contentType + ",application/json"
	clientset, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	return clientset
}

func deployment() *appsv1.Deployment {
	replicas := int32(0)
	surge := intstr.FromString("25%")
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "app", Image: "app:1", Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
						Resources:     corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
						LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}}},
						Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
							LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k",
						}}}},
					}},
					Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				},
			},
		},
	}
}

// TestClientGo_TypedObjectsInBothForms sends the same objects as JSON and as Protobuf.
func TestClientGo_TypedObjectsInBothForms(t *testing.T) {
	specs := map[string]*appsv1.Deployment{}
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		server := apitest.NewServer(t, nil)
		clientset := client(t, server, contentType)
		deployments := clientset.AppsV1().Deployments("default")
		created, err := deployments.Create(t.Context(), deployment(), metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Equal(t, deployment().Spec.Template.Spec.Containers[0].Env, created.Spec.Template.Spec.Containers[0].Env)
		assert.Zero(t, *created.Spec.Replicas)
		created.Spec.Template.Spec.Containers[0].Image = "app:2"
		updated, err := deployments.Update(t.Context(), created, metav1.UpdateOptions{})
		require.NoError(t, err)
		updated.Status.Replicas = 3
		updated, err = deployments.UpdateStatus(t.Context(), updated, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, 3, updated.Status.Replicas)
		updated.ManagedFields = nil
		updated.UID = ""
		updated.CreationTimestamp = metav1.Time{}
		specs[contentType] = updated

		secret, err := clientset.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}, Data: map[string][]byte{"k": {0, 255}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Equal(t, []byte{0, 255}, secret.Data["k"])
		review, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.True(t, review.Status.Allowed)
		uid := types.UID("other")
		err = clientset.CoreV1().Secrets("default").Delete(t.Context(), secret.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		assert.True(t, apierrors.IsConflict(err), "%v", err)
	}
	assert.Equal(t, specs["application/json"], specs["application/vnd.kubernetes.protobuf"])
}

func TestClientGo_ServerSideApply(t *testing.T) {
	server := apitest.NewServer(t, nil)
	deployments := client(t, server, "application/json").AppsV1().Deployments("default")
	_, err := deployments.Create(t.Context(), deployment(), metav1.CreateOptions{FieldManager: "first"})
	require.NoError(t, err)
	change := appsapply.Deployment("web", "default").WithSpec(appsapply.DeploymentSpec().WithReplicas(5))
	_, err = deployments.Apply(t.Context(), change, metav1.ApplyOptions{FieldManager: "second"})
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	applied, err := deployments.Apply(t.Context(), change, metav1.ApplyOptions{FieldManager: "second", Force: true})
	require.NoError(t, err)
	assert.EqualValues(t, 5, *applied.Spec.Replicas)
}

// TestClientGo_InformersRecover runs client-go's reflectors through restarts and compactions.
func TestClientGo_InformersRecover(t *testing.T) {
	for _, watchList := range []string{"true", "false"} {
		t.Run("WatchListClient="+watchList, func(t *testing.T) {
			t.Setenv("KUBE_FEATURE_WatchListClient", watchList)
			server := apitest.NewServer(t, nil)
			clientset := client(t, server, "application/json")
			factory := informers.NewSharedInformerFactory(clientset, 0)
			maps := factory.Core().V1().ConfigMaps()
			var deleted atomic.Int64
			_, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { deleted.Add(1) }})
			require.NoError(t, err)
			stop := make(chan struct{})
			factory.Start(stop)
			defer factory.Shutdown()
			defer close(stop)
			require.True(t, cache.WaitForCacheSync(stop, maps.Informer().HasSynced))
			create := func(name string) {
				require.NoError(t, retry.OnError(retry.DefaultBackoff, func(error) bool { return true }, func() error {
					_, err := clientset.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
					return err
				}))
			}
			for round := range 3 {
				name := fmt.Sprint("m", round)
				create(name)
				require.Eventually(t, func() bool { _, err := maps.Lister().ConfigMaps("default").Get(name); return err == nil }, time.Minute, time.Millisecond)
				require.NoError(t, server.Restart(0))
				require.NoError(t, retry.OnError(retry.DefaultBackoff, func(err error) bool { return !apierrors.IsNotFound(err) }, func() error {
					return clientset.CoreV1().ConfigMaps("default").Delete(t.Context(), name, metav1.DeleteOptions{})
				}))
				server.Compact()
				require.Eventually(t, func() bool { return deleted.Load() == int64(round+1) }, time.Minute, time.Millisecond)
			}
			server.AssertNoUpdateAfterDeletion(t)
		})
	}
}

func TestClientGo_LeaderElection(t *testing.T) {
	server := apitest.NewServer(t, nil)
	clientset := client(t, server, "application/vnd.kubernetes.protobuf")
	leaders := make(chan string, 2)
	run := func(ctx context.Context, id string) {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "lock"}, Client: clientset.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: id},
			},
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { leaders <- id; <-ctx.Done() }, OnStoppedLeading: func() {},
			},
		})
	}
	first, stopFirst := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() { run(first, "one"); done <- struct{}{} }()
	assert.Equal(t, "one", <-leaders)
	second, stopSecond := context.WithCancel(t.Context())
	go func() { run(second, "two"); done <- struct{}{} }()
	stopFirst()
	assert.Equal(t, "two", <-leaders)
	stopSecond()
	<-done
	<-done
	transitions, err := clientset.CoordinationV1().Leases("default").Get(t.Context(), "lock", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, *transitions.Spec.LeaseTransitions)
}
