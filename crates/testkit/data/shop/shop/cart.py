"""The cart: what a customer is about to buy. Prices are in cents."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """Some pieces of one article."""

    article: str
    price: int
    quantity: int


class Cart:
    """Lines of articles, and what they cost together."""

    def __init__(self):
        self._lines = []

    def add(self, article, price, quantity=1):
        """Adds pieces of an article."""
        if quantity < 1:
            raise ValueError("quantity must be at least 1")
        self._lines.append(Line(article, price, quantity))

    def total(self, discount_percent=0):
        """The price of everything, in cents, rounded down after the discount."""
        full = sum(line.price for line in self._lines)
        return full * (100 - discount_percent) // 100
