package clientgo

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	anykind "github.com/anykind/anykind/unstructured"
)

func TestDecodeList_WrappedEOFIsNoEnd(t *testing.T) {
	broken := iotest.ErrReader(fmt.Errorf("the connection broke: %w", io.EOF))
	list := `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}},`
	_, err := decodeList(io.MultiReader(strings.NewReader(list), broken), anykind.Limits{})
	require.ErrorContains(t, err, "the connection broke")
}
