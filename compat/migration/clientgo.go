package migration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	clientgodynamic "k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	clientgocache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

func loginBefore() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
}

func loginAfter(ctx context.Context) (*transport.Config, error) {
	return transport.Load(ctx, nil)
}

func configBefore(config *rest.Config) (clientgodynamic.Interface, error) {
	return clientgodynamic.NewForConfig(config)
}

func configAfter(config *rest.Config) (*dynamic.Client, error) {
	conn, err := restconfig.ToConn(config)
	if err != nil {
		return nil, err
	}
	return dynamic.New(conn, nil), nil
}

func interfaceBefore(config *rest.Config) (clientgodynamic.Interface, error) {
	return clientgodynamic.NewForConfig(config)
}

func interfaceAfter(conn *transport.Conn) clientgodynamic.Interface {
	return clientgo.NewDynamic(conn)
}

func getBefore(ctx context.Context, client clientgodynamic.Interface) (*unstructured.Object, error) {
	return client.Resource(deployments).Namespace("shop").Get(ctx, "web", metav1.GetOptions{})
}

func getAfter(ctx context.Context, client *dynamic.Client) (*unstructured.Object, error) {
	deployments, err := client.Resource(ctx, "deploy")
	if err != nil {
		return nil, err
	}
	return deployments.Namespace("shop").Get(ctx, "web", nil)
}

func listBefore(ctx context.Context, client clientgodynamic.Interface) error {
	list, err := client.Resource(deployments).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		fmt.Println(item.GetName())
	}
	return nil
}

func listAfter(ctx context.Context, deployments *dynamic.Resource) error {
	for item, err := range deployments.AllNamespaces().List(ctx, &metav1.ListOptions{LabelSelector: "app=web"}) {
		if err != nil {
			return err
		}
		fmt.Println(item.GetName())
	}
	return nil
}

func watchBefore(ctx context.Context, client clientgodynamic.Interface) error {
	watcher, err := client.Resource(deployments).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		fmt.Println(event.Type)
	}
	return nil
}

func watchAfter(ctx context.Context, deployments *dynamic.Resource) error {
	for event, err := range deployments.AllNamespaces().Watch(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Println(event.Type)
	}
	return nil
}

func updateBefore(ctx context.Context, client clientgodynamic.ResourceInterface) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj, err := client.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		obj.SetLabels(map[string]string{"tier": "front"})
		_, err = client.Update(ctx, obj, metav1.UpdateOptions{})
		return err
	})
}

func updateAfter(ctx context.Context, deployments *dynamic.Resource) error {
	_, _, err := deployments.Upsert(ctx, "web", func(obj *unstructured.Object) error {
		obj.SetLabels(map[string]string{"tier": "front"})
		return nil
	}, nil)
	return err
}

func patchBefore(ctx context.Context, client clientgodynamic.ResourceInterface, patch []byte) error {
	_, err := client.Patch(ctx, "web", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func patchAfter(ctx context.Context, deployments *dynamic.Resource, patch []byte) error {
	_, err := deployments.Subresource("status").Patch(ctx, "web", types.MergePatchType, patch, nil)
	return err
}

func informerBefore(ctx context.Context, client clientgodynamic.Interface, handler clientgocache.ResourceEventHandler) error {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, time.Hour)
	if _, err := factory.ForResource(deployments).Informer().AddEventHandler(handler); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

func informerInBetween(ctx context.Context, client *dynamic.Client, handler clientgocache.ResourceEventHandler) error {
	factory := clientgo.NewDynamicSharedInformerFactory(client, time.Hour)
	if _, err := factory.ForResource(deployments).Informer().AddEventHandler(handler); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

func informerAfter(ctx context.Context, deployments *dynamic.Resource) error {
	c := cache.New(deployments.AllNamespaces(), &cache.Options[unstructured.Object]{ResyncPeriod: time.Hour})
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for change := range c.Changes(ctx) {
		fmt.Println(change.Type, change.Object)
	}
	return <-ended
}

func execBefore(ctx context.Context, config *rest.Config, url string, options remotecommand.StreamOptions) error {
	executor, err := remotecommand.NewWebSocketExecutor(config, "GET", url)
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, options)
}

func execAfter(ctx context.Context, pods *dynamic.Resource) error {
	output, err := stream.Command(ctx, pods, "web-0", "ls").Output()
	var exited *stream.ExitError
	if errors.As(err, &exited) {
		fmt.Println("exit code", exited.Code)
	}
	fmt.Println(string(output))
	return err
}

func builderBefore(flags *genericclioptions.ConfigFlags) *resource.Builder {
	return resource.NewBuilder(flags)
}

func builderAfter(ctx context.Context, flags *genericclioptions.ConfigFlags) *resource.Builder {
	return resource.NewBuilder(clientgo.WrapRESTClientGetter(ctx, flags, nil))
}

func builderWithoutFlags(ctx context.Context, conn *transport.Conn) (*resource.Builder, error) {
	getter, err := clientgo.NewRESTClientGetter(ctx, conn, discovery.New(conn, nil))
	if err != nil {
		return nil, err
	}
	return resource.NewBuilder(getter), nil
}

func loggingBefore(logger logr.Logger) *slog.Logger {
	klog.SetLogger(logger)
	return slog.New(logr.ToSlogHandler(logger))
}

func loggingAfter(logger *slog.Logger) logr.Logger {
	klog.SetSlogLogger(logger)
	return logr.FromSlogHandler(logger.Handler())
}

func clientsetOverConn(conn *transport.Conn) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(restconfig.FromConn(conn))
}

func informersOverConn(conn *transport.Conn) (informers.SharedInformerFactory, error) {
	clientset, err := kubernetes.NewForConfig(restconfig.FromConn(conn))
	if err != nil {
		return nil, err
	}
	return informers.NewSharedInformerFactory(clientset, time.Hour), nil
}

func dynamicClientOverConn(conn *transport.Conn) (*clientgodynamic.DynamicClient, error) {
	return clientgodynamic.NewForConfig(restconfig.FromConn(conn))
}

func metadataOverConn(conn *transport.Conn) (metadatainformer.SharedInformerFactory, error) {
	client, err := metadata.NewForConfig(restconfig.FromConn(conn))
	if err != nil {
		return nil, err
	}
	return metadatainformer.NewSharedInformerFactory(client, time.Hour), nil
}

func scalesOverConn(ctx context.Context, conn *transport.Conn, client *dynamic.Client) (scale.ScalesGetter, error) {
	discovery, err := clientgo.NewDiscovery(ctx, conn, client.Discovery())
	if err != nil {
		return nil, err
	}
	mapper := client.Mapper().RESTMapper(ctx)
	kinds := scale.NewDiscoveryScaleKindResolver(discovery)
	return scale.NewForConfig(restconfig.FromConn(conn), mapper, clientgodynamic.LegacyAPIPathResolverFunc, kinds)
}

func lockOverConn(conn *transport.Conn, namespace, identity string) (resourcelock.Interface, error) {
	own := resourcelock.ResourceLockConfig{Identity: identity}
	return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, "web", own, restconfig.FromConn(conn), 10*time.Second)
}

func eventsOverConn(conn *transport.Conn) (events.EventBroadcaster, error) {
	clientset, err := kubernetes.NewForConfig(restconfig.FromConn(conn))
	if err != nil {
		return nil, err
	}
	return events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()}), nil
}
