// Command manager is a program of controller-runtime moved to anykind: only the arguments of ctrl.NewManager changed.
// For each ConfigMap with the label copy it keeps a copy in a ConfigMap with the name in the label.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/anykind/anykind/compat/controllerruntime"
	"github.com/anykind/anykind/compat/controllerruntime/manager"
)

func main() {
	cfg, err := config.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), cfg, ctrl.Options{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the manager until ctx ends.
func run(ctx context.Context, cfg *rest.Config, options ctrl.Options) error {
	from, err := controllerruntime.FromConfig(ctx, cfg)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(manager.Configure(from, options))
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.ConfigMap{}).Complete(&copier{mgr.GetClient()}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// copier keeps the copies of ConfigMaps.
type copier struct{ client.Client }

const label = "copy"

// Reconcile implements reconcile.Reconciler.
func (c *copier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	original := &corev1.ConfigMap{}
	if err := c.Get(ctx, request.NamespacedName, original); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if original.Labels[label] == "" || !original.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: original.Namespace, Name: original.Labels[label]}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, copied, func() error {
		copied.Data = original.Data
		return controllerutil.SetControllerReference(original, copied, c.Scheme())
	})
	return ctrl.Result{}, err
}
