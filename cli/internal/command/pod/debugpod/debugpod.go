// Package debugpod builds the containers and pods of the command debug: an ephemeral container in a pod, a copy of a pod, and a pod on a
// node.
package debugpod

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// Options describe the debugging container, and the pod around it.
type Options struct {
	// Container is its name, or "" for a new name.
	Container, Image, PullPolicy string
	Args                         []string
	// ArgsOnly passes Args as arguments of the image's command.
	ArgsOnly bool
	Env      map[string]string
	// Stdin and TTY are set for a session.
	Stdin, TTY bool
	// Target is the container whose processes an ephemeral container sees.
	Target string

	// CopyTo is the name of the copy.
	CopyTo    string
	SetImages map[string]string
	SameNode  bool
	// ShareProcesses is nil for the value of the profile.
	ShareProcesses *bool
	Keep           Keep

	Profile Profile
	// Custom are fields of a container, merged into the debugging container.
	Custom map[string]any
	// OnName is called with a new name.
	OnName func(name string)
}

// Keep are the parts of a pod that a copy keeps.
type Keep struct{ Labels, Annotations, Liveness, Readiness, Startup, InitContainers bool }

// nodePodLabels are kubectl's, so that its selectors find the pod.
var nodePodLabels = map[string]any{"app.kubernetes.io/managed-by": "kubectl-debug"}

// suffixLength is the length of the random end of a name.
const suffixLength = 5

// Ephemeral returns a new ephemeral container for a pod.
func (o *Options) Ephemeral(pod *unstructured.Object) map[string]any {
	container := o.newContainer(o.newName(pod.Object))
	if o.Target != "" {
		container["targetContainerName"] = o.Target
	}
	o.Profile.applyTo(container)
	o.merge(container)
	return container
}

// NodePod returns a pod on a node, and the name of its container.
func (o *Options) NodePod(node string) (pod *unstructured.Object, container string) {
	name := "node-debugger-" + node + "-" + rand.String(suffixLength)
	debugger := o.newContainer(o.Container)
	if o.Container == "" {
		debugger["name"] = "debugger"
	}
	spec := map[string]any{
		"containers": []any{debugger}, "nodeName": node, "restartPolicy": "Never",
		"tolerations": []any{map[string]any{"operator": "Exists"}},
	}
	o.Profile.applyTo(debugger)
	o.Profile.applyToNodePod(spec, debugger)
	o.merge(debugger)
	pod = &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "labels": nodePodLabels}, "spec": spec,
	}}
	return pod, nested.String(debugger, "name")
}

// Copy returns a copy of a pod, and the name of the debugging container: "" if only images are changed.
func (o *Options) Copy(pod *unstructured.Object) (copied *unstructured.Object, name string, err error) {
	original := pod.DeepCopy()
	spec := nested.Map(original.Object, "spec")
	metadata := map[string]any{"name": o.CopyTo, "namespace": pod.GetNamespace()}
	for _, field := range []string{"labels", "annotations"} {
		if value := nested.Map(original.Object, "metadata", field); value != nil {
			metadata[field] = value
		}
	}
	copied = &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}
	delete(spec, "ephemeralContainers")
	if o.ShareProcesses != nil {
		spec["shareProcessNamespace"] = *o.ShareProcesses
	}
	if !o.SameNode {
		delete(spec, "nodeName")
	}
	o.setImages(spec)
	debugger := find(spec, o.Container)
	if debugger == nil {
		switch {
		case o.Image == "" && len(o.SetImages) > 0:
			return copied, "", nil
		case o.Image == "":
			return nil, "", errors.New("you must specify image when creating new container")
		}
		debugger = map[string]any{"name": o.newName(copied.Object), "terminationMessagePolicy": "File"}
		spec["containers"] = append(nested.List(spec, "containers"), debugger)
	}
	o.change(debugger)
	o.Profile.applyTo(debugger)
	o.Profile.applyToCopy(copied.Object, &o.Keep)
	name = nested.String(debugger, "name")
	if o.Custom != nil && !isIn(spec, "containers", name) {
		return nil, "", fmt.Errorf("unable to find the %s container in the pod %s", name, o.CopyTo)
	}
	o.merge(debugger)
	return copied, name, nil
}

func (o *Options) setImages(spec map[string]any) {
	for _, container := range nested.List(spec, "containers") {
		fields, _ := container.(map[string]any)
		image := o.SetImages["*"]
		if own, ok := o.SetImages[nested.String(fields, "name")]; ok {
			image = own
		}
		if image != "" {
			fields["image"] = image
		}
	}
}

func (o *Options) newContainer(name string) map[string]any {
	container := map[string]any{"name": name, "terminationMessagePolicy": "File"}
	o.change(container)
	return container
}

// change sets the fields of the options in a container.
func (o *Options) change(container map[string]any) {
	if len(o.Args) > 0 {
		args := make([]any, len(o.Args))
		for i, arg := range o.Args {
			args[i] = arg
		}
		if o.ArgsOnly {
			container["args"] = args
		} else {
			container["command"] = args
			delete(container, "args")
		}
	}
	if env := o.env(); len(env) > 0 {
		container["env"] = env
	}
	for field, value := range map[string]string{"image": o.Image, "imagePullPolicy": o.PullPolicy} {
		if value != "" {
			container[field] = value
		}
	}
	for field, value := range map[string]bool{"stdin": o.Stdin, "tty": o.TTY} {
		delete(container, field)
		if value {
			container[field] = true
		}
	}
}

// env returns the environment variables, sorted by name.
func (o *Options) env() []any {
	var names []string
	for name := range o.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	var env []any
	for _, name := range names {
		env = append(env, map[string]any{"name": name, "value": o.Env[name]})
	}
	return env
}

// newName returns the name of the options, or a new name in the pod.
func (o *Options) newName(pod map[string]any) string {
	if o.Container != "" {
		return o.Container
	}
	spec := nested.Map(pod, "spec")
	name := ""
	for name == "" || find(spec, name) != nil {
		name = "debugger-" + rand.String(suffixLength)
	}
	if o.OnName != nil {
		o.OnName(name)
	}
	return name
}

// lists are the lists of containers in a pod.
var lists = []string{"containers", "initContainers", "ephemeralContainers"}

// find returns the container of a name in spec, or nil.
func find(spec map[string]any, name string) map[string]any {
	for _, list := range lists {
		for _, container := range nested.List(spec, list) {
			if fields, ok := container.(map[string]any); ok && fields["name"] == name {
				return fields
			}
		}
	}
	return nil
}

func isIn(spec map[string]any, list, name string) bool {
	return slices.ContainsFunc(nested.List(spec, list), func(container any) bool { return nested.String(container, "name") == name })
}
