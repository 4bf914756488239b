// Package webhook serves admission and conversion webhooks over objects of any kind:
//
//	mux := http.NewServeMux()
//	mux.Handle("/validate", webhook.Validate(func(ctx context.Context, r *webhook.Request[unstructured.Object]) error {
//		if r.Object.GetLabels()["team"] == "" {
//			return errors.New("the label team is required")
//		}
//		return nil
//	}, nil))
//	certificate := webhook.NewCertificate("/certs/tls.crt", "/certs/tls.key")
//	mux.Handle("/readyz", certificate)
//	server := &http.Server{Addr: ":9443", Handler: mux, TLSConfig: certificate.TLSConfig()}
//	return server.ListenAndServeTLS("", "")
//
// The functions get *unstructured.Object, or a struct with json tags such as corev1.Pod. [Mutate] computes the JSON patch from the
// returned object. [Convert] finds the functions between two versions. [Register] applies the configurations, and an [Issuer] makes the
// certificate and its CA where no cert-manager does.
//
// See https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/.
package webhook
