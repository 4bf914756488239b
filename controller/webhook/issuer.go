package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// IssuerOptions configure [NewIssuer]. nil and zero values mean the defaults.
type IssuerOptions struct {
	// Validating, Mutating and Definitions are the names of the ValidatingWebhookConfigurations, MutatingWebhookConfigurations and
	// CustomResourceDefinitions with a conversion webhook that get the CA certificates as caBundle. All their webhooks do.
	Validating  []string
	Mutating    []string
	Definitions []string
	// Validity of serving certificates; 0 means 90 days. They are renewed after two thirds of it.
	Validity time.Duration
	// Logger receives failures, which are retried; nil means slog.Default().
	Logger *slog.Logger
}

// Issuer issues the serving certificate of webhooks from its own CA, in place of cert-manager. Secret, CA and certificate are made by
// the first process and shared by all. A new CA certificate is trusted by the server before it is used: until all configurations and
// definitions have it, the former certificate stays in use. A configuration that cannot be changed delays nothing else.
type Issuer struct {
	client *dynamic.Client
	secret types.NamespacedName
	names  []string
	opts   IssuerOptions

	mu          sync.Mutex
	issued      keyPair
	certificate *Certificate

	version string // resourceVersion of the Secret in the last round of Run
}

const (
	issuerManager = "anykind-webhook-ca"
	checkInterval = time.Minute
	// missingInterval is checkInterval while a configuration does not exist.
	missingInterval = 5 * time.Second
	// maxSpread limits the random delay of a round after a change of the Secret, so that the first process completes its change.
	maxSpread = 5 * time.Second
)

var errNotIssued = errors.New("not issued yet")

// NewIssuer returns an issuer of certificates for names, such as "webhook.shop.svc" for the service webhook of the namespace shop. The
// CA and the certificate are kept in a Secret: ca.crt, ca.key, tls.crt and tls.key.
func NewIssuer(client *dynamic.Client, secret types.NamespacedName, names []string, opts *IssuerOptions) *Issuer {
	i := &Issuer{client: client, secret: secret, names: names, opts: *cmp.Or(opts, &IssuerOptions{})}
	i.opts.Logger = cmp.Or(i.opts.Logger, slog.Default())
	i.opts.Validity = cmp.Or(i.opts.Validity, defaultValidity)
	i.certificate = &Certificate{load: func() (certPEM, keyPEM []byte, err error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.issued.certificate == nil {
			return nil, nil, errNotIssued
		}
		return i.issued.certificate, i.issued.key, nil
	}}
	return i
}

// Certificate returns the serving certificate. It is ready after the first issue by Run.
func (i *Issuer) Certificate() *Certificate { return i.certificate }

// Run issues and renews the certificate until ctx ends. It watches the Secret, and checks the configurations and the definitions every
// minute. A configuration or definition that does not exist yet is checked more often. The verbs get, create and update on the Secret,
// get and patch on the configurations and definitions are needed. Without the verbs list and watch on the Secret, it is checked every
// minute, too.
func (i *Issuer) Run(ctx context.Context) error {
	if len(i.names) == 0 {
		return errors.New("issue the certificate of a webhook: a name is required")
	}
	backoff := retry.Backoff{Min: time.Second, Max: checkInterval}
	for failures := 0; ; {
		missing, err := i.issue(ctx)
		switch {
		case ctx.Err() != nil:
			return retry.ContextError(ctx)
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // another process was first
			failures++
			err = backoff.Wait(ctx, 1)
		case err != nil:
			failures++
			i.opts.Logger.Error("issue the certificate of a webhook failed", "failures", failures, "error", err)
			err = backoff.Wait(ctx, failures)
		case missing:
			failures = 0
			err = i.awaitChange(ctx, missingInterval)
		default:
			failures = 0
			err = i.awaitChange(ctx, checkInterval)
		}
		if err != nil {
			return err
		}
	}
}

// awaitChange waits until the Secret differs from the Secret of the last round, at most for interval with jitter.
func (i *Issuer) awaitChange(ctx context.Context, interval time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, retry.Jitter(ctx, interval))
	defer cancel()
	if i.hasChanged(limited) {
		return retry.Sleep(ctx, retry.Random(ctx, maxSpread))
	}
	<-limited.Done()
	if ctx.Err() != nil {
		return retry.ContextError(ctx)
	}
	return nil
}

// hasChanged watches the Secret until it differs from the Secret of the last round. It returns false at the end of ctx, or if the watch
// is rejected.
func (i *Issuer) hasChanged(ctx context.Context) bool {
	secrets, err := i.secrets(ctx)
	if err != nil {
		return false
	}
	exists := false
	for change, err := range secrets.Named(i.secret.Name).Follow(ctx, nil) {
		switch {
		case err != nil:
			return false
		case change.Type == watch.Deleted, change.Type == dynamic.Synced && !exists:
			return true
		case change.Object != nil:
			exists = true
			if change.Object.GetResourceVersion() != i.version {
				return true
			}
		}
	}
	return false
}

func (i *Issuer) secrets(ctx context.Context) (*dynamic.Resource, error) {
	secrets, err := i.client.ForKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	if err != nil {
		return nil, err
	}
	return secrets.Namespace(i.secret.Namespace), nil
}

// issue is a round of [Issuer.Run]. missing reports that a configuration or definition does not exist yet.
func (i *Issuer) issue(ctx context.Context) (missing bool, err error) {
	secrets, err := i.secrets(ctx)
	if err != nil {
		return false, err
	}
	secret, err := secrets.Get(ctx, i.secret.Name, nil)
	if retry.IsObjectNotFound(err) {
		secret = &unstructured.Object{Object: map[string]any{"type": "kubernetes.io/tls"}}
		secret.SetName(i.secret.Name)
		err = nil
	}
	if err != nil {
		return false, err
	}
	decoded, err := unstructured.As[struct {
		Data map[string][]byte `json:"data"`
	}](secret)
	if err != nil {
		return false, err
	}
	pair := &keyPair{decoded.Data["ca.crt"], decoded.Data["ca.key"], decoded.Data["tls.crt"], decoded.Data["tls.key"]}
	if pair.isUsable(i.names) {
		i.use(pair)
	}
	authority, err := pair.authority()
	if err != nil {
		if err := pair.renewAuthority(); err != nil {
			return false, err
		}
		if authority, err = pair.authority(); err != nil {
			return false, err
		}
		if secret.GetResourceVersion() != "" { // the former serving certificate stays in use until the CA is trusted
			if secret, err = store(ctx, secrets, secret, pair); err != nil {
				return false, err
			}
		}
	}
	isServing := pair.isServing(authority.Leaf, i.names)
	if !isServing {
		isTrusted := pair.isSigned(authority.Leaf) // the former serving certificate was stored after the CA was trusted
		if err := pair.renewServing(authority, i.names, i.opts.Validity); err != nil {
			return false, err
		}
		if isTrusted || secret.GetResourceVersion() == "" { // the trusted CA must be the stored CA
			if secret, err = store(ctx, secrets, secret, pair); err != nil {
				return false, err
			}
			isServing = true
		}
		if isTrusted {
			i.use(pair)
		}
	}
	if missing, err = i.trust(ctx, pair.authorities); err != nil {
		return false, err
	}
	if !isServing {
		if secret, err = store(ctx, secrets, secret, pair); err != nil {
			return false, err
		}
	}
	i.version = secret.GetResourceVersion()
	i.use(pair)
	return missing, nil
}

// use replaces the serving certificate of this process.
func (i *Issuer) use(pair *keyPair) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.issued = *pair
}

// store creates or updates the Secret. An update conflicts with an update by another process.
func store(ctx context.Context, secrets *dynamic.Resource, secret *unstructured.Object, pair *keyPair) (*unstructured.Object, error) {
	changed := secret.DeepCopy()
	data, err := unstructured.From(map[string]any{"ca.crt": pair.authorities, "ca.key": pair.authorityKey, "tls.crt": pair.certificate, "tls.key": pair.key})
	if err != nil {
		return nil, err
	}
	if existing, ok := changed.Object["data"].(map[string]any); ok {
		for key, value := range data.Object {
			existing[key] = value
		}
	} else {
		changed.Object["data"] = data.Object
	}
	if secret.GetResourceVersion() == "" {
		return secrets.Create(ctx, changed, nil)
	}
	return secrets.Update(ctx, changed, nil)
}

// trust applies the CA certificates as caBundle of all webhooks. It joins the errors of configurations and definitions.
func (i *Issuer) trust(ctx context.Context, authorities []byte) (missing bool, err error) {
	var errs []error
	for _, target := range []struct {
		kind  schema.GroupVersionKind
		names []string
		patch func(obj *unstructured.Object) ([]operation, error)
	}{
		{configurationKind(validatingKind), i.opts.Validating, configurationBundle(authorities)},
		{configurationKind(mutatingKind), i.opts.Mutating, configurationBundle(authorities)},
		{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, i.opts.Definitions, conversionBundle(authorities)},
	} {
		for _, name := range target.names {
			isMissing, err := i.trustIn(ctx, target.kind, name, target.patch)
			if err != nil {
				errs = append(errs, fmt.Errorf("set the caBundle of %s %q: %w", target.kind.Kind, name, err))
			}
			missing = missing || isMissing
		}
	}
	return missing, errors.Join(errs...)
}

func (i *Issuer) trustIn(ctx context.Context, kind schema.GroupVersionKind, name string, patch func(obj *unstructured.Object) ([]operation, error)) (missing bool, err error) {
	resource, err := i.client.ForKind(ctx, kind)
	if err != nil {
		return false, err
	}
	obj, err := resource.Get(ctx, name, nil)
	if retry.IsObjectNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	operations, err := patch(obj)
	if err != nil || len(operations) == 0 {
		return false, err
	}
	// No server-side apply: its manager would keep a part of a webhook that is removed from an applied configuration, which is invalid.
	operations = append([]operation{
		{Op: "test", Path: "/metadata/uid", Value: obj.GetUID()},
		{Op: "replace", Path: "/metadata/resourceVersion", Value: obj.GetResourceVersion()}, // a conflict after a change
	}, operations...)
	data, err := json.Marshal(operations)
	if err != nil {
		return false, err
	}
	_, err = resource.Patch(ctx, name, types.JSONPatchType, data, &metav1.PatchOptions{FieldManager: issuerManager})
	return false, err
}

// configurationBundle returns the operations for a webhook configuration, or none if it has the CA certificates.
func configurationBundle(authorities []byte) func(*unstructured.Object) ([]operation, error) {
	return func(obj *unstructured.Object) (operations []operation, err error) {
		current, err := unstructured.As[configuration](obj)
		if err != nil {
			return nil, err
		}
		for n, w := range current.Webhooks {
			if !bytes.Equal(w.ClientConfig.CABundle, authorities) {
				operations = append(operations, added(fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", n), authorities))
			}
		}
		return operations, nil
	}
}

// conversionBundle returns the operations for a definition with a conversion webhook, or none if it has the CA certificates.
func conversionBundle(authorities []byte) func(*unstructured.Object) ([]operation, error) {
	return func(obj *unstructured.Object) ([]operation, error) {
		current, err := unstructured.As[struct {
			Spec struct {
				Conversion struct {
					Strategy string `json:"strategy"`
					Webhook  struct {
						ClientConfig clientConfig `json:"clientConfig"`
					} `json:"webhook"`
				} `json:"conversion"`
			} `json:"spec"`
		}](obj)
		if err != nil {
			return nil, err
		}
		conversion := current.Spec.Conversion
		if conversion.Strategy != "Webhook" || bytes.Equal(conversion.Webhook.ClientConfig.CABundle, authorities) {
			return nil, nil
		}
		return []operation{added("/spec/conversion/webhook/clientConfig/caBundle", authorities)}, nil
	}
}
