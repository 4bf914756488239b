package clientgo

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clientGoError converts an error of anykind to the error of client-go's discovery. If no server responded, the result is a
// *url.Error: kubectl matches it without unwrapping and prints a hint for a refused connection. If every response was 401, the
// result is client-go's error for Unauthorized. A deadline that passed before the request is context.DeadlineExceeded. Other
// errors stay as they are.
func clientGoError(err error) error {
	if found, ok := everyCause(err, requestError); ok {
		if found.Err == context.DeadlineExceeded { //nolint:errorlint // the time was over before the request
			return found.Err
		}
		return found
	}
	asStatusError := func(err error) (*apierrors.StatusError, bool) {
		status, ok := err.(*apierrors.StatusError) //nolint:errorlint // everyCause unwraps
		return status, ok
	}
	if found, ok := everyCause(err, asStatusError); ok && found.ErrStatus.Code == http.StatusUnauthorized {
		return apierrors.NewGenericServerResponse(http.StatusUnauthorized, "get", schema.GroupResource{}, "", "", 0, true)
	}
	return err
}

// requestError converts an error of transport.Conn for a request without a response. A *url.Error of a nested request, such as a
// token request, does not count.
func requestError(err error) (converted *url.Error, ok bool) {
	if convertible, isConvertible := err.(interface{ As(target any) bool }); isConvertible {
		ok = convertible.As(&converted)
	}
	return converted, ok
}

// everyCause returns the first match in err, and whether each of the joined errors in err has a match.
func everyCause[T error](err error, match func(error) (T, bool)) (first T, ok bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if found, ok := match(err); ok {
			return found, true
		}
		joined, isJoined := err.(interface{ Unwrap() []error })
		if !isJoined {
			continue
		}
		for i, cause := range joined.Unwrap() {
			found, isFound := everyCause(cause, match)
			if !isFound {
				return first, false
			}
			if i == 0 {
				first = found
				ok = true
			}
		}
		return first, ok
	}
	return first, false
}

// contextMapper is a RESTMapper with the methods of apimachinery 0.37's meta.ResettableRESTMapperWithContext.
type contextMapper interface {
	meta.ResettableRESTMapper
	ResetWithContext(ctx context.Context)
	KindForWithContext(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error)
	KindsForWithContext(ctx context.Context, resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error)
	ResourceForWithContext(ctx context.Context, input schema.GroupVersionResource) (schema.GroupVersionResource, error)
	ResourcesForWithContext(ctx context.Context, input schema.GroupVersionResource) ([]schema.GroupVersionResource, error)
	RESTMappingWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
	RESTMappingsWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error)
	ResourceSingularizerWithContext(ctx context.Context, resource string) (string, error)
}

// getterMapper is the mapper of a RESTClientGetter. Its errors are converted by clientGoError.
type getterMapper struct {
	contextMapper
	ctx context.Context //nolint:containedctx // for the methods without a context
}

func (m getterMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.KindForWithContext(m.ctx, resource)
}

func (m getterMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.KindsForWithContext(m.ctx, resource)
}

func (m getterMapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.ResourceForWithContext(m.ctx, input)
}

func (m getterMapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.ResourcesForWithContext(m.ctx, input)
}

func (m getterMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.RESTMappingWithContext(m.ctx, gk, versions...)
}

func (m getterMapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.RESTMappingsWithContext(m.ctx, gk, versions...)
}

func (m getterMapper) ResourceSingularizer(resource string) (string, error) {
	return m.ResourceSingularizerWithContext(m.ctx, resource)
}

func (m getterMapper) KindForWithContext(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kind, err := m.contextMapper.KindForWithContext(ctx, resource)
	return kind, clientGoError(err)
}

func (m getterMapper) KindsForWithContext(ctx context.Context, resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	kinds, err := m.contextMapper.KindsForWithContext(ctx, resource)
	return kinds, clientGoError(err)
}

func (m getterMapper) ResourceForWithContext(ctx context.Context, input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	resource, err := m.contextMapper.ResourceForWithContext(ctx, input)
	return resource, clientGoError(err)
}

func (m getterMapper) ResourcesForWithContext(ctx context.Context, input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	resources, err := m.contextMapper.ResourcesForWithContext(ctx, input)
	return resources, clientGoError(err)
}

func (m getterMapper) RESTMappingWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.contextMapper.RESTMappingWithContext(ctx, gk, versions...)
	return mapping, clientGoError(err)
}

func (m getterMapper) RESTMappingsWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	mappings, err := m.contextMapper.RESTMappingsWithContext(ctx, gk, versions...)
	return mappings, clientGoError(err)
}

func (m getterMapper) ResourceSingularizerWithContext(ctx context.Context, resource string) (string, error) {
	singular, err := m.contextMapper.ResourceSingularizerWithContext(ctx, resource)
	return singular, clientGoError(err)
}
