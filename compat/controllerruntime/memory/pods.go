//go:build unix

package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// createPods creates pods as those of Deployments, with two containers and a status.
func createPods(ctx context.Context, cfg *rest.Config, count int) error {
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range count {
		group.Go(func() error {
			pod := newPod(i)
			if err := c.Create(ctx, pod); err != nil {
				return err
			}
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
				{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			}}
			return c.Status().Update(ctx, pod)
		})
	}
	return group.Wait()
}

func newPod(i int) *corev1.Pod {
	app := fmt.Sprintf("app-%d", i/50)
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "registry.example.com/team/" + app + "/" + name + ":v1.2.3",
			Env:   []corev1.EnvVar{{Name: "APP", Value: app}, {Name: "ENVIRONMENT", Value: "production"}, {Name: "LOG_LEVEL", Value: "info"}},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
			}},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s-%06d", app, i),
			Labels:      map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/version": "v1.2.3", "pod-template-hash": "7c5ddbdf54"},
			Annotations: map[string]string{"example.com/checksum": fmt.Sprintf("%032x", i)},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container("server"), container("proxy")}, AutomountServiceAccountToken: new(bool),
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}
