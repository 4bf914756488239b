package serve

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// checkConversion rejects requests for a version converted by a webhook, with the error of an API server that cannot call it.
// Returning unconverted objects would hide the missing conversion.
func (c *call) checkConversion() error {
	strategy := nested.String(c.resource.Definition, "spec", "conversion", "strategy")
	if strategy != "Webhook" || c.resource.Version == c.resource.StorageVersion {
		return nil
	}
	return apierrors.NewInternalError(fmt.Errorf("conversion webhook for %s/%s, Kind=%s failed: apitest calls no conversion webhooks (use the stored version %s)",
		c.resource.Group, c.resource.StorageVersion, c.resource.Kind, c.resource.StorageVersion))
}
