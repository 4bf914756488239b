package simulate_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest/simulate"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// paint is a controller that writes the color red to each ConfigMap.
func paint(ctx context.Context, p *simulate.Process) error {
	configMaps, err := p.Client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	configMaps = configMaps.Namespace("default")
	for change, err := range configMaps.Follow(ctx, nil) {
		if err != nil {
			return err
		}
		if change.Type != watch.Added && change.Type != watch.Modified {
			continue
		}
		if color, _, _ := unstructured.Get[string](change.Object, "data", "color"); color == "red" {
			continue
		}
		_, err := configMaps.Patch(ctx, change.Object.GetName(), types.MergePatchType, []byte(`{"data": {"color": "red"}}`), nil)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// copySettings is a controller that keeps a copy of the ConfigMap settings. It deletes the copy when it sees the deletion.
func copySettings(ctx context.Context, p *simulate.Process) error {
	configMaps, err := p.Client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	configMaps = configMaps.Namespace("default")
	for change, err := range configMaps.Follow(ctx, &dynamic.FollowOptions{FieldSelector: "metadata.name=settings"}) {
		if err != nil {
			return err
		}
		if change.Type == watch.Added {
			duplicate := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "settings-copy"}}}
			if _, err := configMaps.Create(ctx, duplicate, nil); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		if change.Type == watch.Deleted {
			if _, err := configMaps.Delete(ctx, "settings-copy", nil); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// createConfigMap, deleteConfigMap and repaint are actions of a user.
func createConfigMap(ctx context.Context, client *dynamic.Client) error {
	configMaps, err := client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	settings := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "settings"}}}
	_, err = configMaps.Namespace("default").Create(ctx, settings, nil)
	return err
}

func deleteConfigMap(ctx context.Context, client *dynamic.Client) error {
	configMaps, err := client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	_, err = configMaps.Namespace("default").Delete(ctx, "settings", nil)
	return err
}

func repaint(ctx context.Context, client *dynamic.Client) error {
	configMaps, err := client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	_, err = configMaps.Namespace("default").Patch(ctx, "settings", types.MergePatchType, []byte(`{"data": {"color": "blue"}}`), nil)
	return err
}

// A test that fails with the first wrong run.
func ExampleTest() {
	t := new(testing.T) // of func TestOperator_Simulated(t *testing.T)
	simulate.Test(t, &simulate.Scenario{
		Run: paint,
		Steps: []simulate.Step{
			{Name: "creates the ConfigMap", Do: createConfigMap},
			{Name: "changes its color", Do: repaint},
		},
	}, &simulate.Options{Seeds: 5})
	fmt.Println("failed:", t.Failed())
	// Output: failed: false
}

// The controller passes a test without faults. But a copy stays if the ConfigMap is deleted while the controller is down.
func ExampleFind() {
	t := new(testing.T) // of a test
	failure := simulate.Find(t, &simulate.Scenario{
		Run: copySettings,
		Steps: []simulate.Step{
			{Name: "creates the ConfigMap", Do: createConfigMap},
			{Name: "deletes the ConfigMap", Do: deleteConfigMap},
		},
	}, nil)
	fmt.Println(failure.Err)
	for _, choice := range failure.Choices {
		fmt.Println(choice)
	}
	// Output:
	// the final state differs from a run without faults:
	//   ConfigMap default/settings-copy should not be there: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings-copy","namespace":"default"}}
	// controller create configmaps default #1: the process crashes after this write
	// start of process #1: after 15s
}

// A day with the operations of a cluster, such as crashes, rolling updates and restarts of the server.
func ExampleDay() {
	t := new(testing.T)
	simulate.Day(t, &simulate.Scenario{
		Run:   paint,
		Steps: []simulate.Step{{Name: "creates the ConfigMap", Do: createConfigMap}},
	}, &simulate.DayOptions{MaxRequests: 5000})
	fmt.Println("failed:", t.Failed())
	// Output: failed: false
}
