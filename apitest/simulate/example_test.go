package simulate_test

import (
	"context"
	"testing"

	"github.com/anykind/anykind/apitest/simulate"
	"github.com/anykind/anykind/dynamic"
)

// A day with the operations of a cluster, for a program that watches ConfigMaps. operate and createConfigMap belong to the program's
// own tests.
func ExampleDay() {
	operate := func(ctx context.Context, client *dynamic.Client) error { <-ctx.Done(); return ctx.Err() }
	createConfigMap := func(context.Context, *dynamic.Client) error { return nil }

	_ = func(t *testing.T) { // TestOperator_Day
		simulate.Day(t, &simulate.Scenario{
			Run:       func(ctx context.Context, p *simulate.Process) error { return operate(ctx, p.Client) },
			Processes: 2,
			Steps:     []simulate.Step{{Name: "creates a ConfigMap", Do: createConfigMap}},
		}, &simulate.DayOptions{MaxRequests: 500})
	}
	// Output:
}
