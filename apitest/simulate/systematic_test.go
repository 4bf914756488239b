package simulate

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func configMapsOf(ctx context.Context, c *dynamic.Client) (*dynamic.Resource, error) {
	configMaps, err := c.Resource(ctx, "configmaps")
	if err != nil {
		return nil, err
	}
	return configMaps.Namespace("default"), nil
}

// createsTwo returns a scenario whose program creates the ConfigMaps "first" and "second" in one go: it does nothing if "first" exists.
func createsTwo() *Scenario {
	return &Scenario{Run: func(ctx context.Context, p *Process) error {
		configMaps, err := configMapsOf(ctx, p.Client)
		if err != nil {
			return err
		}
		n := 0
		for _, err := range configMaps.List(ctx, nil) {
			if err != nil {
				return err
			}
			n++
		}
		for _, name := range []string{"first", "second"} {
			if n == 0 {
				if _, err := configMaps.Create(ctx, &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}, nil); err != nil {
					return err
				}
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}}
}

func TestFind_SystematicRunIsShrunkAndReplayed(t *testing.T) {
	failure := Find(t, createsTwo(), nil)
	require.NotNil(t, failure)
	assert.Zero(t, failure.Seed)
	assert.Len(t, failure.Choices, 1, "the crash, without an outage")
	assert.Contains(t, failure.Trace, "lists configmaps: default/first (resourceVersion ")
	assert.Contains(t, failure.Trace, ", 1 in all")
	assert.Contains(t, failure.Error(), "To repeat it alone:\n  &simulate.Options{Replay: ")

	again := Find(t, createsTwo(), &Options{Replay: failure.Replay})
	require.NotNil(t, again)
	assert.Equal(t, 2, again.Runs)
	assert.Equal(t, failure.Choices, again.Choices)
	assert.Equal(t, failure.Err.Error(), again.Err.Error())
}

// mirrors returns a scenario whose program creates "copy" at the event of "source", if "late" exists.
func mirrors() *Scenario {
	step := func(do func(ctx context.Context, configMaps *dynamic.Resource) error) func(context.Context, *dynamic.Client) error {
		return func(ctx context.Context, c *dynamic.Client) error {
			configMaps, err := configMapsOf(ctx, c)
			if err != nil {
				return err
			}
			return do(ctx, configMaps)
		}
	}
	create := func(name string) func(ctx context.Context, configMaps *dynamic.Resource) error {
		return func(ctx context.Context, configMaps *dynamic.Resource) error {
			_, err := configMaps.Create(ctx, &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}, nil)
			return err
		}
	}
	return &Scenario{
		Run: func(ctx context.Context, p *Process) error {
			configMaps, err := configMapsOf(ctx, p.Client)
			if err != nil {
				return err
			}
			if _, err := configMaps.Get(ctx, "late", nil); err == nil { // a later process
				<-ctx.Done()
				return ctx.Err()
			}
			for event, err := range configMaps.Watch(ctx, &metav1.ListOptions{}) {
				if err != nil {
					return err
				}
				if event.Type != watch.Added || event.Object.GetName() != "source" {
					continue
				}
				_, err := configMaps.Get(ctx, "late", nil)
				if err == nil {
					err = create("copy")(ctx, configMaps)
				}
				if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
					return err
				}
			}
			return ctx.Err()
		},
		Steps: []Step{{Name: "creates the source", Do: step(create("source"))}, {Name: "creates another", Do: step(create("late"))}},
		Check: func(ctx context.Context, c *dynamic.Client) error {
			configMaps, err := configMapsOf(ctx, c)
			if err != nil {
				return err
			}
			if _, err := configMaps.Get(ctx, "copy", nil); apierrors.IsNotFound(err) {
				return nil
			}
			return errors.New("a copy was made too late")
		},
	}
}

func TestFind_HeldEventIsInTrace(t *testing.T) {
	failure := Find(t, mirrors(), nil)
	require.NotNil(t, failure)
	assert.Contains(t, failure.Trace, "holds back the event ADDED of configmaps default/source until after step 2")
}
