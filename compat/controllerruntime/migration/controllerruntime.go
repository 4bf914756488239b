package migration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/compat/controllerruntime"
	"github.com/anykind/anykind/compat/controllerruntime/manager"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/events"
	"github.com/anykind/anykind/controller/leaderelection"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func managerBefore(config *rest.Config) (ctrl.Manager, error) {
	return ctrl.NewManager(config, ctrl.Options{})
}

func managerInBetween(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
	from, err := controllerruntime.FromConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(manager.Configure(from, ctrl.Options{}))
}

func shardedInBetween(ctx context.Context, mgr ctrl.Manager, group *sharding.Group, reconciler reconcile.Reconciler) error {
	deployments, err := controllerruntime.NewShardedReconciler(mgr.GetCache(), group, &appsv1.Deployment{}, reconciler)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.Pod{}).WatchesRawSource(deployments).Complete(deployments)
	if err != nil {
		return err
	}
	return group.Run(ctx, mgr.Start)
}

func clientBefore(config *rest.Config) (client.Client, error) {
	return client.New(config, client.Options{})
}

func clientInBetween(config *rest.Config) (client.Client, error) {
	return controllerruntime.NewClient(config, client.Options{})
}

func clientAfter(ctx context.Context, config *transport.Config) (*dynamic.Handle[appsv1.Deployment], error) {
	client, err := dynamic.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	deployments, err := client.Resource(ctx, "deployments.apps")
	if err != nil {
		return nil, err
	}
	return dynamic.As[appsv1.Deployment](deployments), nil
}

func getBefore(ctx context.Context, c client.Client) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, deployment)
	return deployment, client.IgnoreNotFound(err)
}

func getAfter(ctx context.Context, deployments *dynamic.Handle[appsv1.Deployment]) (*appsv1.Deployment, error) {
	deployment, err := deployments.Namespace("shop").Get(ctx, "web", nil)
	return deployment, client.IgnoreNotFound(err)
}

func listBefore(ctx context.Context, c client.Client) error {
	deployments := &appsv1.DeploymentList{}
	if err := c.List(ctx, deployments, client.InNamespace("shop"), client.MatchingLabels{"app": "web"}); err != nil {
		return err
	}
	for i := range deployments.Items {
		fmt.Println(deployments.Items[i].Name)
	}
	return nil
}

func listAfter(ctx context.Context, deployments *dynamic.Handle[appsv1.Deployment]) error {
	for deployment, err := range deployments.Namespace("shop").List(ctx, &metav1.ListOptions{LabelSelector: "app=web"}) {
		if err != nil {
			return err
		}
		fmt.Println(deployment.Name)
	}
	return nil
}

func createBefore(ctx context.Context, c client.Client, configMap *corev1.ConfigMap) error {
	return c.Create(ctx, configMap, client.DryRunAll, client.FieldOwner("shop"))
}

func createAfter(ctx context.Context, configMaps *dynamic.Handle[corev1.ConfigMap], configMap *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return configMaps.Create(ctx, configMap, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "shop"})
}

func createOrUpdateBefore(ctx context.Context, c client.Client, data map[string]string) error {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, configMap, func() error {
		configMap.Data = data
		return nil
	})
	return err
}

func createOrUpdateAfter(ctx context.Context, configMaps *dynamic.Handle[corev1.ConfigMap], data map[string]string) error {
	_, _, err := configMaps.Namespace("shop").Upsert(ctx, "settings", func(configMap *corev1.ConfigMap) error {
		configMap.Data = data
		return nil
	}, nil)
	return err
}

func mergePatchBefore(ctx context.Context, c client.Client, deployment *appsv1.Deployment) error {
	base := deployment.DeepCopy()
	deployment.Labels = map[string]string{"tier": "front"}
	return c.Patch(ctx, deployment, client.MergeFrom(base))
}

func mergePatchAfter(ctx context.Context, deployments *dynamic.Resource) error {
	patch := []byte(`{"metadata":{"labels":{"tier":"front"}}}`)
	_, err := deployments.Namespace("shop").Patch(ctx, "web", types.MergePatchType, patch, nil)
	return err
}

func applyBefore(ctx context.Context, c client.Client, obj *unstructured.Object) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("shop"), client.ForceOwnership)
}

func applyAfter(ctx context.Context, deployments *dynamic.Resource, obj *unstructured.Object) error {
	_, err := deployments.Apply(ctx, obj, &metav1.ApplyOptions{FieldManager: "shop", Force: true})
	return err
}

func statusBefore(ctx context.Context, c client.Client, deployment *appsv1.Deployment) error {
	deployment.Status.ObservedGeneration = deployment.Generation
	return c.Status().Update(ctx, deployment)
}

func statusAfter(ctx context.Context, deployments *dynamic.Handle[appsv1.Deployment], deployment *appsv1.Deployment) error {
	deployment.Status.ObservedGeneration = deployment.Generation
	_, err := deployments.Subresource("status").Update(ctx, deployment, nil)
	return err
}

func deleteBefore(ctx context.Context, c client.Client, deployment *appsv1.Deployment) error {
	if err := c.Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return err
	}
	return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("shop"), client.MatchingLabels{"app": "web"})
}

func deleteAfter(ctx context.Context, deployments, configMaps *dynamic.Resource) error {
	foreground := metav1.DeletePropagationForeground
	if _, err := deployments.Namespace("shop").Delete(ctx, "web", &metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		return err
	}
	_, err := configMaps.Namespace("shop").DeleteCollection(ctx, nil, &metav1.ListOptions{LabelSelector: "app=web"})
	return err
}

func watchBefore(ctx context.Context, c client.WithWatch) error {
	watcher, err := c.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace("shop"))
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		fmt.Println(event.Type)
	}
	return nil
}

func watchAfter(ctx context.Context, deployments *dynamic.Handle[appsv1.Deployment]) error {
	for event, err := range deployments.Namespace("shop").Watch(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Println(event.Type, event.Object.Name)
	}
	return nil
}

func indexBefore(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, "spec.nodeName", func(obj client.Object) []string {
		return []string{obj.(*corev1.Pod).Spec.NodeName}
	})
	if err != nil {
		return err
	}
	return mgr.GetCache().List(ctx, &corev1.PodList{}, client.MatchingFields{"spec.nodeName": "node-1"})
}

func indexAfter(ctx context.Context, pods *dynamic.Handle[corev1.Pod]) ([]*corev1.Pod, error) {
	c := cache.New(pods.AllNamespaces(), &cache.Options[corev1.Pod]{Indexes: map[string]func(*corev1.Pod) []string{
		"spec.nodeName": func(pod *corev1.Pod) []string { return []string{pod.Spec.NodeName} },
	}})
	go func() { _ = c.Run(ctx) }()
	if err := c.WaitForSync(ctx); err != nil {
		return nil, err
	}
	return c.ByIndex("spec.nodeName", "node-1")
}

func controllerBefore(mgr ctrl.Manager, reconciler reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Complete(reconciler)
}

func controllerAfter(ctx context.Context, deployments, configMaps *dynamic.Resource) error {
	reconciled := cache.New[unstructured.Object](deployments, nil)
	owned := cache.New[unstructured.Object](configMaps, nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return reconciled.Run(ctx) })
	group.Go(func() error { return owned.Run(ctx) })
	group.Go(func() error {
		return controller.Run(ctx, reconciled, func(ctx context.Context, key types.NamespacedName) (after time.Duration, err error) {
			deployment, found := reconciled.Get(key.Namespace, key.Name)
			fmt.Println(deployment, found)
			return 0, nil
		}, &controller.Options{Triggers: []controller.Trigger{controller.Owns(owned, deployments)}})
	})
	return group.Wait()
}

func predicatesBefore(mgr ctrl.Manager, reconciler reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Complete(reconciler)
}

func predicatesAfter(ctx context.Context, deployments *cache.Cache[appsv1.Deployment], reconcile controller.ReconcileFunc) error {
	return controller.Run(ctx, deployments, reconcile, &controller.Options{Predicates: []controller.Predicate{controller.GenerationChanged}})
}

func webhookBefore(mgr ctrl.Manager) {
	mgr.GetWebhookServer().Register("/validate", &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, r admission.Request) admission.Response {
		deployment := &appsv1.Deployment{}
		if err := admission.NewDecoder(mgr.GetScheme()).Decode(r, deployment); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if deployment.Labels["team"] == "" {
			return admission.Denied("the label team is required")
		}
		return admission.Allowed("")
	})})
}

func webhookAfter(mux *http.ServeMux) {
	mux.Handle("/validate", webhook.Validate(func(_ context.Context, r *webhook.Request[appsv1.Deployment]) error {
		if r.Object.Labels["team"] == "" {
			return errors.New("the label team is required")
		}
		return nil
	}, nil))
}

func certificateAfter(ctx context.Context, client *dynamic.Client, mux *http.ServeMux) error {
	issuer := webhook.NewIssuer(client, types.NamespacedName{Namespace: "shop", Name: "webhook-certificate"}, []string{"webhook.shop.svc"},
		&webhook.IssuerOptions{Validating: []string{"deployments.example.com"}})
	mux.Handle("/readyz", issuer.Certificate())
	server := &http.Server{Addr: ":9443", Handler: mux, TLSConfig: issuer.Certificate().TLSConfig(), ReadHeaderTimeout: time.Minute}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return issuer.Run(ctx) })
	group.Go(func() error { return server.ListenAndServeTLS("", "") })
	group.Go(func() error { <-ctx.Done(); return server.Close() })
	return group.Wait()
}

func finalizerBefore(ctx context.Context, c client.Client, obj client.Object, cleanUp func() error) error {
	if obj.GetDeletionTimestamp().IsZero() {
		if controllerutil.AddFinalizer(obj, "example.com/disk") {
			return c.Update(ctx, obj)
		}
		return nil
	}
	if err := cleanUp(); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(obj, "example.com/disk")
	return c.Update(ctx, obj)
}

func finalizerAfter(ctx context.Context, widgets *dynamic.Resource, obj *unstructured.Object, cleanUp func() error) error {
	_, _, err := controller.Finalize(ctx, widgets, obj, "example.com/disk", func(context.Context, *unstructured.Object) error {
		return cleanUp()
	})
	return err
}

func ownerBefore(c client.Client, owner, obj client.Object) error {
	return controllerutil.SetControllerReference(owner, obj, c.Scheme())
}

func ownerAfter(owner, obj *unstructured.Object) error {
	return controller.SetControllerReference(owner, obj)
}

func eventBefore(mgr ctrl.Manager, deployment *appsv1.Deployment) {
	mgr.GetEventRecorder("shop").Eventf(deployment, nil, corev1.EventTypeWarning, "NoImage", "Checking", "image %s is missing", "web:2")
}

func eventAfter(ctx context.Context, client *dynamic.Client, deployment *unstructured.Object) error {
	recorder, err := events.NewRecorder(ctx, client, "shop", nil)
	if err != nil {
		return err
	}
	recorder.Record(deployment, events.Event{
		Type: corev1.EventTypeWarning, Reason: "NoImage", Action: "Checking", Note: fmt.Sprintf("image %s is missing", "web:2"),
	})
	return recorder.Close(ctx)
}

func leaderBefore(ctx context.Context, config *rest.Config) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{LeaderElection: true, LeaderElectionID: "shop", LeaderElectionNamespace: "shop"})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func leaderAfter(ctx context.Context, leases *dynamic.Resource, lead func(context.Context) error) error {
	return leaderelection.Run(ctx, leases.Namespace("shop"), "shop", nil, func(ctx context.Context, _ int64) error { return lead(ctx) })
}

func mapperBefore(config *rest.Config) (meta.RESTMapper, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return apiutil.NewDynamicRESTMapper(config, client)
}

func mapperAfter(ctx context.Context, client *dynamic.Client) meta.RESTMapper {
	return client.Mapper().RESTMapper(ctx)
}
