package transport

import (
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRequestError_IsURLError(t *testing.T) {
	err := fmt.Errorf("discover: %w", &requestError{"GET", "https://127.0.0.1:1/api", syscall.ECONNREFUSED})
	require.EqualError(t, err, "discover: GET https://127.0.0.1:1/api: connection refused")
	found, ok := errors.AsType[*url.Error](err)
	require.True(t, ok)
	assert.Equal(t, &url.Error{Op: "Get", URL: "https://127.0.0.1:1/api", Err: syscall.ECONNREFUSED}, found)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, ok = errors.AsType[*requestError](errors.New("other"))
	assert.False(t, ok)
}
