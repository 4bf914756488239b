package apitest_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/planscenario"
)

// TestPlan_CopyEqualsCluster plans with a copy of the sandbox, and compares with the sandbox after the apply.
func TestPlan_CopyEqualsCluster(t *testing.T) {
	c := client.Connect(t, "admin")
	for _, s := range planscenario.All() {
		t.Run(s.Name, func(t *testing.T) {
			planscenario.Run(t, c, &s, func(ctx context.Context) (*dynamic.Client, error) { return copyOf(ctx, t, c) })
		})
	}
}

// TestPlan_CopyAgreesWithServer compares the responses of a copy with the responses of the sandbox.
func TestPlan_CopyAgreesWithServer(t *testing.T) {
	c := client.Connect(t, "admin")
	for _, s := range planscenario.All() {
		if s.NeedsCopy {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			planscenario.Compare(t, c, &s, func(ctx context.Context) (*dynamic.Client, error) { return copyOf(ctx, t, c) })
		})
	}
}

// TestPlan_RandomSets plans random sets with a copy of the sandbox, and compares with the sandbox after each apply.
func TestPlan_RandomSets(t *testing.T) {
	c := client.Connect(t, "admin")
	seed := compare.Number(t, "ANYKIND_SEED", rand.IntN(1<<30))
	planscenario.Random(t, c, compare.Number(t, "ANYKIND_PLAN_SETS", 30), uint64(seed), func(ctx context.Context, t *testing.T) (*dynamic.Client, error) {
		return copyOf(ctx, t, c)
	})
}

func copyOf(ctx context.Context, t *testing.T, c *dynamic.Client) (*dynamic.Client, error) {
	t.Helper()
	copied, err := clustercopy.From(ctx, c, &clustercopy.Options{SecretData: true})
	if err != nil {
		return nil, err
	}
	server, err := apitest.Start(&apitest.Options{Copy: copied}) //nolint:contextcheck // the server outlives ctx; NewServer has no warnings
	if err != nil {
		return nil, err
	}
	t.Cleanup(server.Close)
	return server.Client(), nil
}
