package simulate

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/examples/deployment-notifier/notifier"
	"github.com/anykind/anykind/examples/operator/greeting"
	"github.com/anykind/anykind/internal/testing/race"
	"github.com/anykind/anykind/unstructured"
)

// stepOn returns a step on the objects of a kind in the namespace default, which waits until the kind is served.
func stepOn(kind schema.GroupVersionKind, name string, do func(ctx context.Context, r *dynamic.Resource) error) Step {
	return Step{name, func(ctx context.Context, client *dynamic.Client) error {
		found, err := client.WaitForKinds(ctx, kind)
		if err != nil {
			return err
		}
		return do(ctx, found[0].Namespace("default"))
	}}
}

func createObject(name string, spec map[string]any) func(ctx context.Context, r *dynamic.Resource) error {
	return func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Create(ctx, &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}}, nil)
		return err
	}
}

func patchObject(name, patch string) func(ctx context.Context, r *dynamic.Resource) error {
	return func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Patch(ctx, name, types.MergePatchType, []byte(patch), nil)
		return err
	}
}

// greetingScenarios run examples/operator.
func greetingScenarios() map[string]*Scenario {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Greeting"}
	create := stepOn(kind, "creates the Greeting", createObject("first", map[string]any{"name": "world"}))
	change := stepOn(kind, "changes the Greeting", patchObject("first", `{"spec":{"name":"moon"}}`))
	remove := stepOn(kind, "deletes the Greeting", func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Delete(ctx, "first", nil)
		return err
	})
	awaitDeletion := stepOn(kind, "waits for the end of the Greeting", func(ctx context.Context, r *dynamic.Resource) error {
		_, err := r.Wait(ctx, "first", dynamic.Deleted())
		return err
	})
	scenarios := map[string]*Scenario{}
	for name, steps := range map[string][]Step{
		"operator, a Greeting is changed":    {create, change},
		"operator, a Greeting is deleted":    {create, change, remove},
		"operator, a Greeting is made again": {create, remove, awaitDeletion, create},
	} {
		scenarios[name] = &Scenario{
			Run: func(ctx context.Context, p *Process) error {
				return greeting.Run(ctx, p.Client, "", &controller.Options{Logger: slog.New(slog.DiscardHandler)})
			},
			Steps: steps,
		}
	}
	return scenarios
}

// output is the standard output of the processes of a run.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Split(strings.TrimSpace(o.text.String()), "\n")
}

func (o *output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}

func imagePatch(image string) string {
	return `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"` + image + `"}]}}}}`
}

// notifierScenario runs examples/deployment-notifier. In the final state a change of the image is printed.
func notifierScenario() *Scenario {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "DeploymentNotifier"}
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	labels := map[string]any{"app": "web"}
	deployment := func(name string) *unstructured.Object {
		return &unstructured.Object{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "default"},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
				},
			},
		}}
	}
	out := &output{}
	return &Scenario{
		Server: apitest.Options{Objects: []*unstructured.Object{deployment("old"), deployment("web")}},
		Run:    func(ctx context.Context, p *Process) error { return notifier.Run(ctx, p.Client, out) },
		Steps: []Step{
			stepOn(kind, "creates the DeploymentNotifier", func(ctx context.Context, r *dynamic.Resource) error {
				out.reset()
				return createObject("mine", map[string]any{"deployment": "old"})(ctx, r)
			}),
			stepOn(deployments, "changes the image to web:2", patchObject("old", imagePatch("web:2"))),
			stepOn(kind, "selects another Deployment", patchObject("mine", `{"spec":{"deployment":"web"}}`)),
			stepOn(deployments, "changes the image to web:2", patchObject("web", imagePatch("web:2"))),
			stepOn(deployments, "changes the image to web:3", patchObject("web", imagePatch("web:3"))),
		},
		Check: func(ctx context.Context, client *dynamic.Client) error { return checkNotifier(ctx, client, out) },
	}
}

// checkNotifier changes the images of both Deployments, and waits until the change of the selected one is printed.
func checkNotifier(ctx context.Context, client *dynamic.Client, out *output) error {
	deployments, err := client.Resource(ctx, "deployments")
	if err != nil {
		return err
	}
	for _, name := range []string{"old", "web"} {
		if err := patchObject(name, imagePatch("web:9"))(ctx, deployments.Namespace("default")); err != nil {
			return err
		}
	}
	time.Sleep(time.Minute)
	printed := 0
	for _, line := range out.lines() {
		name := ""
		before := ""
		after := ""
		switch _, err := fmt.Sscanf(line, "mine: %s changed from %s to %s", &name, &before, &after); {
		case strings.Contains(line, "no longer watching"), strings.Contains(line, " has "):
		case err != nil:
			return fmt.Errorf("not a change of an image: %q", line)
		case before >= after:
			return fmt.Errorf("a change that there was not: %q", line)
		case after == "web:9" && name == "old":
			return fmt.Errorf("a change of a Deployment that is not selected: %q", line)
		case after == "web:9":
			printed++
		}
	}
	if printed != 1 {
		return fmt.Errorf("the last change of the image is printed %d times: %q", printed, out.lines())
	}
	return nil
}

func TestTest_Examples(t *testing.T) {
	scenarios := greetingScenarios()
	scenarios["deployment-notifier"] = notifierScenario()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Test(t, s, &Options{Seeds: *seeds, FirstSeed: *firstSeed, NoEnumeration: race.Enabled || *firstSeed != 1})
		})
	}
}
