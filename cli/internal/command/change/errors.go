package change

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// sourceError adds the file name to err like kubectl: error when creating "web.yaml": …
func sourceError(verb, source string, err error) error {
	if source == "" || err == nil {
		return err
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return fmt.Errorf("error when %s %q: %w", verb, source, err)
	}
	changed := *status
	changed.ErrStatus.Message = fmt.Sprintf("error when %s %q: %s", verb, source, status.ErrStatus.Message)
	return &changed
}
