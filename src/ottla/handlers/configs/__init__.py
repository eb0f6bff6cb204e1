"""Settings as several APIs describe and change them."""
