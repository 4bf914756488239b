package inspect

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/internal/command"
)

func TestTree_ForbiddenInOneLine(t *testing.T) {
	var errs bytes.Buffer
	s := &command.State{Streams: command.Streams{Err: &errs}}
	forbidden := func(group, resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "", errors.New("no"))
	}
	warnUnread(s, "Warning: not in the tree", []error{forbidden("", "secrets"), errors.New("list pods: broken"), forbidden("apps", "daemonsets")})
	assert.Equal(t, "Warning: not in the tree: list pods: broken\nWarning: not in the tree: no permission to list secrets, daemonsets.apps\n", errs.String())
}
