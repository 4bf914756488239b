package applyset_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// kubectl runs kubectl in a namespace and returns its output. NAMESPACE in the arguments and in stdin stands for the namespace.
func (e *environment) kubectl(t *testing.T, namespace, arguments, stdin string) string {
	t.Helper()
	arguments = strings.ReplaceAll(arguments, "NAMESPACE", namespace)
	command := exec.CommandContext(t.Context(), cluster.Kubectl(t), append([]string{"--namespace=" + namespace}, strings.Fields(arguments)...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t), "KUBECTL_APPLYSET=true", "KUBE_EDITOR="+editor(t), "HOME="+t.TempDir())
	command.Stdin = strings.NewReader(strings.ReplaceAll(stdin, "NAMESPACE", namespace))
	output, err := command.CombinedOutput()
	require.NoError(t, err, "kubectl %s: %s", arguments, output)
	return string(output)
}

// editor returns a program for kubectl edit. It replaces "value: before" by "value: edited".
func editor(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "editor")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\nsed -i 's/: before$/: edited/; s/: 70$/: 60/' \"$1\"\n"), 0o700))
	return name
}

// step is a command of kubectl, or a server-side apply of the manager named after applyAs: kubectl would migrate other managers.
type step struct{ arguments, stdin string }

const applyAs = "apply-as "

func (e *environment) run(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		manager, isApply := strings.CutPrefix(s.arguments, applyAs)
		if !isApply {
			e.kubectl(t, e.namespace, s.arguments, s.stdin)
			continue
		}
		for _, obj := range e.objects(t, s.stdin) {
			resource, err := e.ForObject(t.Context(), obj.Object)
			require.NoError(t, err)
			_, err = resource.Namespace(e.namespace).Apply(t.Context(), obj.Object, &metav1.ApplyOptions{FieldManager: manager})
			require.NoError(t, err)
		}
	}
}

// scenario is a move of an object from kubectl.
type scenario struct {
	name string
	// kubectl prepares the objects, and others are writes of different managers. Their order is kubectl, others, later.
	kubectl, others, later []step
	// manifest has the object for the set.
	manifest string
	// reason is a part of the event's Reason if fields stay with their manager. The set then takes over conflicting fields.
	reason string
	// owners are entries of managedFields that only the moved object has. The API server records a write of the subresource scale only
	// if an entry had the replicas before.
	owners []string
}

// TestSet_AdoptFromKubectl adopts objects and applies a manifest once. The result equals, field by field and with the same
// ownership, that of objects which were only ever applied by the set, with the same writes of others.
func TestSet_AdoptFromKubectl(t *testing.T) {
	cluster.Kubectl(t)
	e := newEnvironment(t)
	e.define(t, definitions)
	for _, s := range scenarios(e.namespace + ".example.com") {
		t.Run(s.name, func(t *testing.T) {
			adopted := e.within(client.NewNamespace(t, e.Client))
			adopted.run(t, s.kubectl)
			adopted.run(t, s.others)
			adopted.run(t, s.later)
			objects := adopted.objects(t, s.manifest)
			set := adopted.set("shop")
			events, err := set.Adopt(t.Context(), objects, nil)
			require.NoError(t, err)
			require.Len(t, events, 1)
			assert.Equal(t, applyset.Configured, events[0].Action)
			opts := &applyset.ApplyOptions{}
			if s.reason != "" {
				opts.Conflicts = applyset.ConflictForce
				assert.Contains(t, events[0].Reason, s.reason)
			} else {
				assert.Empty(t, events[0].Reason)
			}
			_, err = set.Apply(t.Context(), objects, opts)
			require.NoError(t, err)
			adopted.requests.reset()
			events, err = set.Adopt(t.Context(), objects, nil)
			require.NoError(t, err)
			assert.Equal(t, applyset.Unchanged, events[0].Action)
			assert.Empty(t, writes(adopted.requests.reset()), "the second Adopt")

			fresh := e.within(client.NewNamespace(t, e.Client))
			freshObjects := fresh.objects(t, s.manifest)
			_, err = fresh.set("shop").Apply(t.Context(), freshObjects, nil)
			require.NoError(t, err)
			fresh.run(t, s.others)
			have, haveOwners := adopted.state(t, objects[0])
			want, wantOwners := fresh.state(t, freshObjects[0])
			assert.Equal(t, want, have)
			for _, owner := range s.owners {
				assert.Contains(t, haveOwners, owner)
				delete(haveOwners, owner)
			}
			assert.Equal(t, wantOwners, haveOwners)
		})
	}
}

// TestSet_AdoptRejectsParent names the parent of the set without its namespace.
func TestSet_AdoptRejectsParent(t *testing.T) {
	e := newEnvironment(t)
	set := applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "adopt"}, &applyset.Options{Namespace: e.namespace})
	objects := e.configMaps(t, "x", "a")
	_, err := set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	for _, namespace := range []string{"", e.namespace} {
		secret := applyset.Reference{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: namespace, Name: "adopt"}
		_, err = set.Adopt(t.Context(), objects, &applyset.AdoptOptions{Members: []applyset.Reference{secret}})
		require.ErrorContains(t, err, "it is the parent of the set")
	}
}

// within returns the environment with a different namespace.
func (e *environment) within(namespace string) *environment {
	copied := *e
	copied.namespace = namespace
	return &copied
}

// state returns the fields of an object and the fields of its owners, without names of the namespace and without fields of the
// server and its controllers.
func (e *environment) state(t *testing.T, obj *manifest.Object) (object string, owners map[string]string) {
	t.Helper()
	resource, err := e.ForObject(t.Context(), obj.Object)
	require.NoError(t, err)
	live, err := resource.Namespace(e.namespace).Get(t.Context(), obj.GetName(), nil)
	require.NoError(t, err)
	owners = map[string]string{}
	for _, entry := range live.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "kube-controller-manager") {
			continue
		}
		key := fmt.Sprint(entry.Manager, " ", entry.Operation, " ", entry.APIVersion, " ", entry.Subresource)
		fields, err := json.Marshal(entry.FieldsV1)
		require.NoError(t, err)
		owners[e.normalize(key)] = e.normalize(string(fields))
	}
	metadata, _ := live.Object["metadata"].(map[string]any)
	for _, name := range []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp"} {
		delete(metadata, name)
	}
	if kind := live.GetKind(); kind == "Deployment" || kind == "HorizontalPodAutoscaler" { // their controllers write it at any time
		delete(live.Object, "status")
		for _, name := range []string{"deployment.kubernetes.io/revision", "autoscaling.alpha.kubernetes.io/conditions"} { // the second in v1
			_, err := unstructured.Delete(live, "metadata", "annotations", name)
			require.NoError(t, err)
		}
		if len(live.GetAnnotations()) == 0 {
			delete(metadata, "annotations")
		}
	}
	text, err := json.MarshalIndent(live.Object, "", " ")
	require.NoError(t, err)
	return e.normalize(string(text)), owners
}

func (e *environment) normalize(text string) string {
	id := applyset.Parent{Namespace: e.namespace, Name: "shop"}.ID()
	return strings.ReplaceAll(strings.ReplaceAll(text, e.namespace, "NAMESPACE"), id, "ID")
}

// define creates CustomResourceDefinitions until the test ends.
func (e *environment) define(t *testing.T, text string) {
	t.Helper()
	resource := client.Resource(t, e.Client, "customresourcedefinitions")
	for _, definition := range e.objects(t, text) {
		_, err := resource.Create(t.Context(), definition.Object, nil)
		require.NoError(t, err)
		client.DeleteAtEnd(t, resource, definition.GetName())
		_, err = resource.Wait(t.Context(), definition.GetName(), dynamic.Condition("Established"))
		require.NoError(t, err)
	}
}
