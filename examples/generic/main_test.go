package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGeneric(t *testing.T) {
	c := client.Connect(t, "admin")
	var out bytes.Buffer
	require.NoError(t, generic(t.Context(), c, &out))
	assert.Equal(t, `not valid: spec.replicsa: the schema has no such field (did you mean replicas?)
defined generic.example.com/v1, Kind=Foo
created Foo baz: {Info:unpatched baz Replicas:1}
patched the status of baz: {IsBad:true}
applied qux: {Info: Replicas:2}
updated qux: {Info: Replicas:3}
listed baz: {Info:unpatched baz Replicas:1}
listed qux: {Info: Replicas:3}
qux is green, a field that the struct lacks
deleted baz
`, out.String())

	_, err := client.Resource(t, c, "crd").Wait(t.Context(), "foos.generic.example.com", dynamic.Deleted())
	require.NoError(t, err)
}
