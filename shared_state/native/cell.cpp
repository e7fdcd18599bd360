namespace agora {}
