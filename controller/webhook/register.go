package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Configuration is a ValidatingWebhookConfiguration or MutatingWebhookConfiguration with a webhook. Zero values mean the defaults of the
// server.
type Configuration struct {
	// Name is the name of the configuration and of its webhook, in the form "widgets.example.com".
	Name string
	// Mutating makes it a MutatingWebhookConfiguration.
	Mutating bool
	// Service and Path are the target in the cluster. Port 0 means 443.
	Service types.NamespacedName
	Port    int32
	Path    string
	// URL is the target in place of Service: an HTTPS URL with the path.
	URL string
	// CABundle has the PEM certificates trusted by the server. Leave it to [Issuer], or empty for the server's root certificates.
	CABundle []byte
	// Operations and Resources are the requests that call the webhook. A resource is "widgets" or "widgets/status".
	Operations []Operation
	Resources  []schema.GroupVersionResource
	// NamespaceSelector and ObjectSelector limit the objects.
	NamespaceSelector *metav1.LabelSelector
	ObjectSelector    *metav1.LabelSelector
	// FailurePolicy is "Fail" or "Ignore", for a webhook that cannot be called.
	FailurePolicy string
	// TimeoutSeconds is the time budget of a call.
	TimeoutSeconds int32
	// SideEffectsOnDryRun is set for a function with side effects that checks Request.DryRun. By default the function has none.
	SideEffectsOnDryRun bool
}

const (
	validatingKind = "ValidatingWebhookConfiguration"
	mutatingKind   = "MutatingWebhookConfiguration"
)

func configurationKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}
}

// Register applies configurations by server-side apply with opts. nil opts mean the field manager "anykind" with Force. The server
// calls the webhooks a moment later. The verb patch on the configurations is needed.
func Register(ctx context.Context, client *dynamic.Client, configurations []Configuration, opts *metav1.ApplyOptions) error {
	opts = cmp.Or(opts, &metav1.ApplyOptions{FieldManager: "anykind", Force: true})
	for _, c := range configurations {
		obj, err := c.object()
		if err != nil {
			return fmt.Errorf("register webhook %q: %w", c.Name, err)
		}
		resource, err := client.ForKind(ctx, obj.GroupVersionKind())
		if err == nil {
			_, err = resource.Apply(ctx, obj, opts)
		}
		if err != nil {
			return fmt.Errorf("register webhook %q: %w", c.Name, err)
		}
	}
	return nil
}

type configuration struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Webhooks []configuredWebhook `json:"webhooks"`
}

type configuredWebhook struct {
	Name                    string                `json:"name"`
	ClientConfig            clientConfig          `json:"clientConfig"`
	Rules                   []rule                `json:"rules,omitempty"`
	NamespaceSelector       *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	ObjectSelector          *metav1.LabelSelector `json:"objectSelector,omitempty"`
	FailurePolicy           string                `json:"failurePolicy,omitempty"`
	TimeoutSeconds          int32                 `json:"timeoutSeconds,omitempty"`
	SideEffects             string                `json:"sideEffects,omitempty"`
	AdmissionReviewVersions []string              `json:"admissionReviewVersions,omitempty"`
}

type clientConfig struct {
	URL      string   `json:"url,omitempty"`
	Service  *service `json:"service,omitempty"`
	CABundle []byte   `json:"caBundle,omitempty"`
}

type service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path,omitempty"`
	Port      int32  `json:"port,omitempty"`
}

type rule struct {
	Operations  []Operation `json:"operations"`
	APIGroups   []string    `json:"apiGroups"`
	APIVersions []string    `json:"apiVersions"`
	Resources   []string    `json:"resources"`
}

func (c *Configuration) object() (*unstructured.Object, error) {
	if (c.URL == "") == (c.Service.Name == "") {
		return nil, errors.New("exactly one of URL and Service is required")
	}
	w := configuredWebhook{
		Name: c.Name, NamespaceSelector: c.NamespaceSelector, ObjectSelector: c.ObjectSelector, FailurePolicy: c.FailurePolicy,
		TimeoutSeconds: c.TimeoutSeconds, SideEffects: "None", AdmissionReviewVersions: []string{"v1"},
		ClientConfig: clientConfig{URL: c.URL, CABundle: c.CABundle},
	}
	if c.SideEffectsOnDryRun {
		w.SideEffects = "NoneOnDryRun"
	}
	if c.Service.Name != "" {
		w.ClientConfig.Service = &service{c.Service.Namespace, c.Service.Name, c.Path, c.Port}
	}
	for _, r := range c.Resources {
		w.Rules = append(w.Rules, rule{c.Operations, []string{r.Group}, []string{r.Version}, []string{r.Resource}})
	}
	all := configuration{Webhooks: []configuredWebhook{w}}
	all.Metadata.Name = c.Name
	kind := validatingKind
	if c.Mutating {
		kind = mutatingKind
	}
	all.APIVersion, all.Kind = configurationKind(kind).ToAPIVersionAndKind()
	return unstructured.From(all)
}
