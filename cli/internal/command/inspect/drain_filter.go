package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// podFilter decides about the pods of a drained node.
type podFilter struct {
	force, ignoreDaemonSets, deleteEmptyDirData bool
	skipDeletedAfter                            int // seconds; 0 skips none

	// daemonSet returns an error if the DaemonSet does not exist or cannot be read.
	daemonSet func(ctx context.Context, namespace, name string) error
}

// decision is the treatment of a pod: a problem prevents the drain of its node, a warning is printed.
type decision struct {
	remove           bool
	problem, warning string
}

// decide applies kubectl's rules to a pod. The last of several warnings is kept.
func (f *podFilter) decide(ctx context.Context, pod *unstructured.Object) decision {
	phase, _, _ := unstructured.Get[string](pod, "status", "phase")
	isFinished := phase == "Succeeded" || phase == "Failed"
	controller := metav1.GetControllerOf(pod)
	_, isMirror := pod.GetAnnotations()["kubernetes.io/config.mirror"]
	if f.isSkipped(pod) {
		return decision{}
	}
	if controller != nil && controller.Kind == "DaemonSet" && controller.APIVersion == "apps/v1" && !isFinished {
		if d := f.decideDaemonPod(ctx, pod, controller.Name); !d.remove {
			return d
		}
	}
	result := decision{remove: true}
	switch {
	case isMirror:
		return decision{}
	case isFinished:
		return result
	}
	if usesEmptyDir(pod) {
		if !f.deleteEmptyDirData {
			return decision{problem: "Pods with local storage (use --delete-emptydir-data to override)"}
		}
		result.warning = "deleting Pods with local storage"
	}
	if controller == nil {
		if !f.force {
			return decision{problem: "Pods that declare no controller (use --force to override)"}
		}
		result.warning = "deleting Pods that declare no controller"
	} else {
		result.warning = "" // as in kubectl: its last rule drops the warning
	}
	return result
}

// decideDaemonPod decides about a pod of a DaemonSet. The DaemonSet would recreate the pod, so the pod is removed only if the
// DaemonSet is deleted and --force is set.
func (f *podFilter) decideDaemonPod(ctx context.Context, pod *unstructured.Object, daemonSet string) decision {
	err := f.daemonSet(ctx, pod.GetNamespace(), daemonSet)
	switch {
	case apierrors.IsNotFound(err) && f.force:
		return decision{remove: true}
	case err != nil:
		return decision{problem: command.ServerMessage(err)}
	case !f.ignoreDaemonSets:
		return decision{problem: "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"}
	}
	return decision{warning: "ignoring DaemonSet-managed Pods"}
}

// isSkipped reports whether a pod was deleted more than skipDeletedAfter seconds ago.
func (f *podFilter) isSkipped(pod *unstructured.Object) bool {
	deleted := pod.GetDeletionTimestamp()
	return f.skipDeletedAfter > 0 && deleted != nil && time.Since(deleted.Time) > time.Duration(f.skipDeletedAfter)*time.Second
}

// usesEmptyDir reports whether a pod has an emptyDir volume: its data is deleted with the pod.
func usesEmptyDir(pod *unstructured.Object) bool {
	return slices.ContainsFunc(nested.List(pod.Object, "spec", "volumes"), func(volume any) bool {
		return nested.Value(volume, "emptyDir") != nil
	})
}

// podDecisions are the decisions about the pods of a node.
type podDecisions struct {
	remove         []*unstructured.Object
	warned, failed groupedNames
}

// groupedNames maps texts to names of pods, in the order of the first use of each text.
type groupedNames struct {
	texts []string
	names map[string][]string
}

func (g *groupedNames) add(text, name string) {
	if g.names == nil {
		g.names = map[string][]string{}
	}
	if g.names[text] == nil {
		g.texts = append(g.texts, text)
	}
	g.names[text] = append(g.names[text], name)
}

func (d *podDecisions) add(pod *unstructured.Object, made decision) {
	name := pod.GetNamespace() + "/" + pod.GetName()
	if made.problem != "" {
		d.failed.add(made.problem, name)
	}
	if made.warning != "" {
		d.warned.add(made.warning, name)
	}
	if made.remove {
		d.remove = append(d.remove, pod)
	}
}

// undeletableError has the reasons why pods of a node cannot be deleted.
type undeletableError []string

func (e undeletableError) Error() string {
	if len(e) == 1 {
		return e[0]
	}
	return "[" + strings.Join(e, ", ") + "]"
}

// err returns an error with the problems and their pods, or nil without problems.
func (d *podDecisions) err() error {
	var texts undeletableError
	for _, text := range d.failed.texts {
		texts = append(texts, fmt.Sprintf("cannot delete %s: %s", text, strings.Join(d.failed.names[text], ", ")))
	}
	if len(texts) == 0 {
		return nil
	}
	return texts
}

func (d *podDecisions) warnings() string {
	var texts []string
	for _, text := range d.warned.texts {
		texts = append(texts, text+": "+strings.Join(d.warned.names[text], ", "))
	}
	return strings.Join(texts, "; ")
}
