package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cli/internal/command/pod/debugpod"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

func (o *debugOptions) run(cmd *cobra.Command, names []string) error {
	ctx := cmd.Context()
	for i, name := range names {
		if !strings.Contains(name, "/") {
			names[i] = "pods/" + name
		}
	}
	for info, err := range o.finder.Objects(ctx, names, true) {
		if err != nil {
			return err
		}
		f, container, err := o.create(ctx, info)
		if err != nil {
			return err
		}
		if !o.output.IsDefault() {
			if err := o.output.Object(f.pod, ""); err != nil {
				return err
			}
		}
		if !o.attaches || container == "" {
			continue
		}
		o.container = container
		if err := o.attachTo(ctx, cmd.Parent().CommandPath()+" attach", f); err != nil {
			return err
		}
	}
	return nil
}

// create creates the debugging container for an object, and returns its pod and name. The name is "" for a copy without a debugging
// container.
func (o *debugOptions) create(ctx context.Context, info *resource.Info) (f *found, container string, err error) {
	switch info.Resource.APIResource().GVR.GroupResource().String() {
	case "nodes":
		pods, err := o.Connection.Handle(ctx, "pods")
		if err != nil {
			return nil, "", err
		}
		pod, container := o.NodePod(info.Name)
		if err := o.message("Creating debugging pod %s with container %s on node %s.", pod.GetName(), container, info.Name); err != nil {
			return nil, "", err
		}
		created, err := pods.Create(ctx, pod, nil)
		return newFound(pods, created), container, err
	case "pods":
		if o.CopyTo != "" {
			return o.copyPod(ctx, info)
		}
		return o.addEphemeral(ctx, info)
	}
	return nil, "", fmt.Errorf("%q not supported by debug", info.Resource.APIResource().GVK)
}

func newFound(pods *dynamic.Resource, pod *unstructured.Object) *found {
	return &found{resource: pods, object: pod, pods: pods, pod: pod, count: 1}
}

func (o *debugOptions) copyPod(ctx context.Context, info *resource.Info) (*found, string, error) {
	copied, container, err := o.Copy(info.Object)
	if err != nil {
		return nil, "", err
	}
	for _, c := range nested.List(copied.Object, "spec", "containers") {
		if fields, ok := c.(map[string]any); ok && fields["name"] == container {
			o.warnRoot(copied, fields)
		}
	}
	created, err := info.Resource.Create(ctx, copied, nil)
	if err != nil {
		return nil, "", err
	}
	if o.replace {
		now := int64(0)
		if _, err := info.Resource.Delete(ctx, info.Name, &metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return nil, "", err
		}
	}
	return newFound(info.Resource, created), container, nil
}

func (o *debugOptions) addEphemeral(ctx context.Context, info *resource.Info) (*found, string, error) {
	container := o.Ephemeral(info.Object)
	o.warnRoot(info.Object, container)
	patch, err := unstructured.Encode(&unstructured.Object{Object: map[string]any{
		"spec": map[string]any{"ephemeralContainers": []any{container}},
	}})
	if err != nil {
		return nil, "", err
	}
	changed, err := info.Resource.Subresource("ephemeralcontainers").Patch(ctx, info.Name, types.StrategicMergePatchType, patch, nil)
	if err != nil {
		return nil, "", err
	}
	return newFound(info.Resource, changed), nested.String(container, "name"), nil
}

func (o *debugOptions) warnRoot(pod *unstructured.Object, container map[string]any) {
	if debugpod.NeedsRoot(pod.Object, container) {
		o.Errorf(`Warning: Non-root user is configured for the entire target Pod, and some capabilities granted by debug profile may not work. Please consider using "--custom" with a custom profile that specifies "securityContext.runAsUser: 0".`)
	}
}

// attachTo waits for the debugging container and attaches to it. The log of an ended container is printed.
func (o *debugOptions) attachTo(ctx context.Context, path string, f *found) error {
	status, err := o.awaitContainer(ctx, f)
	if err != nil {
		return err
	}
	if nested.Map(status, "state", "terminated") == nil {
		keys, err := parseKeys(defaultDetachKeys)
		if err != nil {
			return err
		}
		err = o.attach(ctx, path, f, keys)
		if err == nil || ctx.Err() != nil {
			return err
		}
		o.Errorf("warning: couldn't attach to pod/%s, falling back to streaming logs: %v", f.pod.GetName(), err)
	}
	log, err := stream.Logs(ctx, f.pods, f.pod.GetName(), &stream.LogOptions{Container: o.container})
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(printable.Unwrap(o.Out), log)
	return err
}

// awaitContainer returns the status of the debugging container once it runs or has ended.
func (o *debugOptions) awaitContainer(ctx context.Context, f *found) (map[string]any, error) {
	name := f.pod.GetName()
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	warned := ""
	for change, err := range f.pods.Follow(ctx, &dynamic.FollowOptions{FieldSelector: selector}) {
		switch {
		case err != nil:
			return nil, err
		case change.Type == watch.Deleted:
			return nil, apierrors.NewNotFound(f.pods.APIResource().GVR.GroupResource(), name)
		case change.Object == nil:
			continue
		}
		f.pod = change.Object
		status := containerStatus(change.Object, o.container)
		if nested.Map(status, "state", "running") != nil || nested.Map(status, "state", "terminated") != nil {
			return status, nil
		}
		if message := nested.String(status, "state", "waiting", "message"); message != "" && message != warned && !o.quiet {
			warned = message
			o.Errorf("Warning: container %s: %s", o.container, message)
		}
	}
	return nil, errors.Join(context.Cause(ctx), errors.New("wait for the container"))
}

func containerStatus(pod *unstructured.Object, container string) map[string]any {
	for _, list := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		for _, status := range nested.List(pod.Object, "status", list) {
			if fields, ok := status.(map[string]any); ok && fields["name"] == container {
				return fields
			}
		}
	}
	return nil
}
