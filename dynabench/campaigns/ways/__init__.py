"""How people come: one adapter a panel, which reads its addresses and knows its way back."""
