package controllerruntime

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/dynamic"
)

// FromConfig returns constructors over a connection with the server and the credential of a config, for programs without a
// dynamic.Client. Caches receive built-in objects and metadata as protobuf, as those of controller-runtime do, unless the config has
// content types. Discovery begins with the first lookup. Requests with config itself do not use the connection:
// manager.Configure and [Constructors.Config] return a config that does.
func FromConfig(ctx context.Context, config *rest.Config) (*Constructors, error) {
	if config == nil {
		return nil, errors.New("must provide non-nil rest.Config")
	}
	accepting := rest.CopyConfig(config)
	if config.ContentType == "" && config.AcceptContentTypes == "" {
		accepting.AcceptContentTypes = runtime.ContentTypeProtobuf
	}
	conn, err := restconfig.ToConn(accepting)
	if err != nil {
		return nil, err
	}
	from := New(ctx, dynamic.New(conn, nil))
	from.config = restconfig.WithConn(config, conn)
	return from, nil
}

// fromConfig is [FromConfig] for controller-runtime's functions without a ctx.
func fromConfig(config *rest.Config) (*Constructors, error) {
	return FromConfig(context.Background(), config) //nolint:forbidigo // See above.
}

// NewClient is a client.NewClientFunc over a new connection; see [FromConfig] and [Constructors.NewClient].
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	from, err := fromConfig(config)
	if err != nil {
		return nil, err
	}
	return from.NewClient(config, options)
}

// NewClientWithWatch is like client.NewWithWatch, over a new connection.
func NewClientWithWatch(config *rest.Config, options client.Options) (client.WithWatch, error) {
	from, err := fromConfig(config)
	if err != nil {
		return nil, err
	}
	return from.NewClientWithWatch(config, options)
}

// NewCache is a cache.NewCacheFunc over a new connection; see [FromConfig] and [Constructors.NewCache].
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	from, err := fromConfig(config)
	if err != nil {
		return nil, err
	}
	return from.NewCache(config, options)
}

// MapperProvider is a manager.Options.MapperProvider over a new connection; the HTTP client is not used.
func MapperProvider(config *rest.Config, _ *http.Client) (meta.RESTMapper, error) {
	from, err := fromConfig(config)
	if err != nil {
		return nil, err
	}
	return from.mapper(), nil
}
